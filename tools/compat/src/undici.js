import { FormData, Headers, MockAgent, Request, Response, fetch, request } from "undici";

export default async function () {
	const agent = new MockAgent();
	agent.disableNetConnect();
	const pool = agent.get("https://api.example.com");
	pool.intercept({ path: "/users?a=1", method: "GET" }).reply(200, { users: ["ada"] }, { headers: { "content-type": "application/json" } });
	pool.intercept({ path: "/users", method: "POST", body: '{"name":"grace"}' }).reply(201, (o) => `made ${o.body}`);
	pool.intercept({ path: "/fetch" }).reply(200, "by fetch", { headers: { "x-a": "b" } });
	const get = await request("https://api.example.com/users", { query: { a: 1 }, dispatcher: agent });
	const post = await request("https://api.example.com/users", { method: "POST", body: '{"name":"grace"}', dispatcher: agent });
	const fetched = await fetch("https://api.example.com/fetch", { dispatcher: agent });
	const refused = await request("https://other.example.com/", { dispatcher: agent }).catch((err) => err.code);
	const form = new FormData();
	form.set("a", "b");
	return {
		get: [get.statusCode, await get.body.json()],
		post: [post.statusCode, await post.body.text()],
		fetched: [fetched.status, fetched.headers.get("x-a"), await fetched.text()],
		refused,
		pending: agent.pendingInterceptors().length,
		headers: [...new Headers({ B: "1", a: "2" })],
		request: new Request("https://a.b/c", { method: "PUT", body: "x" }).method,
		response: await new Response("text").text(),
		form: [...form],
	};
}
