import { AutoRouter, error, json } from "itty-router";

const router = AutoRouter({ before: [(r) => void (r.user = r.headers.get("x-user") ?? "anonymous")] });
router
	.get("/hello/:name", ({ params, query, user }) => ({ hello: params.name, query, user }))
	.post("/sum", async (request) => (await request.json()).reduce((a, b) => a + b, 0))
	.get("/json", () => json([1, 2], { status: 202 }))
	.get("/error", () => error(418, "teapot"));

export default async function () {
	const out = [];
	for (const [path, init] of [
		["/hello/ada?x=1&x=2", { headers: { "x-user": "grace" } }],
		["/sum", { method: "POST", body: "[1,2,3]" }],
		["/json"],
		["/error"],
		["/none"],
	]) {
		const res = await router.fetch(new Request("https://example.com" + path, init));
		out.push([res.status, res.headers.get("content-type"), await res.json()]);
	}
	return out;
}
