import { H3, HTTPError, getQuery, getRouterParam, readBody, setCookie } from "h3";

const app = new H3();
app.get("/users/:id", (event) => ({ id: getRouterParam(event, "id"), query: getQuery(event) }));
app.post("/echo", async (event) => {
	setCookie(event, "session", "abc", { httpOnly: true, path: "/" });
	return { got: await readBody(event) };
});
app.get("/fail", () => {
	throw new HTTPError({ status: 409, message: "conflict" });
});

export default async function () {
	const user = await app.request("/users/9?a=1&a=2&b=c");
	const echo = await app.request("/echo", { method: "POST", body: '{"x":[1]}', headers: { "content-type": "application/json" } });
	const fail = await app.request("/fail");
	return {
		user: await user.json(),
		echo: [echo.headers.get("set-cookie"), await echo.json()],
		fail: [fail.status, (await fail.json()).message],
		none: (await app.request("/none")).status,
	};
}
