import axios, { AxiosError } from "axios";

export default async function () {
	const calls = [];
	const fetch = async (input, init) => {
		const req = new Request(input, init);
		calls.push([req.method, req.url, req.headers.get("x-a"), req.headers.get("content-type"), req.body ? await req.text() : null]);
		if (req.url.includes("/fail")) return new Response('{"error":"no"}', { status: 422, headers: { "content-type": "application/json" } });
		return new Response('{"ok":true,"n":[1,2]}', { status: 200, headers: { "content-type": "application/json", "x-b": "c" } });
	};
	const client = axios.create({ baseURL: "https://api.example.com/v1", adapter: "fetch", env: { fetch, Request, Response }, headers: { "X-A": "b" }, timeout: 1000 });
	client.interceptors.request.use((config) => ({ ...config, params: { ...config.params, t: "1" } }));
	const get = await client.get("/items", { params: { q: "a b", list: [1, 2] } });
	const post = await client.post("/items", { name: "é" });
	const form = await client.post("/form", new URLSearchParams({ a: "1", b: "2 3" }));
	const fail = await client.get("/fail").catch((err) => [err instanceof AxiosError, err.code, err.response.status, err.response.data, err.message]);
	const controller = new AbortController();
	controller.abort();
	const aborted = await client.get("/x", { signal: controller.signal }).catch((err) => err.code);
	return { get: [get.status, get.data, get.headers["x-b"]], post: post.data, form: form.status, fail, aborted, calls, uri: axios.getUri({ url: "/a", params: { x: { y: 1 } } }) };
}
