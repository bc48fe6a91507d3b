import { Hono } from "hono";
import { cors } from "hono/cors";
import { sign, verify } from "hono/jwt";
import { validator } from "hono/validator";

const app = new Hono().basePath("/api");
app.use("*", cors({ origin: "https://example.com" }));
app.get("/users/:id{[0-9]+}", (c) => c.json({ id: Number(c.req.param("id")), q: c.req.query("q") ?? null }));
app.post(
	"/users",
	validator("json", (value, c) => (value.name ? value : c.text("no name", 400))),
	async (c) => c.json({ created: c.req.valid("json").name }, 201),
);
app.get("/html", (c) => c.html("<p>hello</p>"));
app.notFound((c) => c.text("nothing at " + c.req.path, 404));
app.onError((err, c) => c.text("failed: " + err.message, 500));
app.get("/throw", () => {
	throw new Error("on purpose");
});

export default async function () {
	const out = [];
	const post = (body) => ({ method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
	for (const [path, init] of [
		["/api/users/7?q=a%20b"],
		["/api/users/x"],
		["/api/users", post({ name: "Ada" })],
		["/api/users", post({})],
		["/api/html"],
		["/api/throw"],
	]) {
		const res = await app.request(path, { ...init, headers: { ...init?.headers, origin: "https://example.com" } });
		out.push([res.status, res.headers.get("content-type"), res.headers.get("access-control-allow-origin"), await res.text()]);
	}
	const token = await sign({ sub: "ada", exp: 4102444800 }, "secret", "HS256");
	return { out, token, payload: await verify(token, "secret", "HS256") };
}
