import ky, { HTTPError } from "ky";

export default async function () {
	const calls = [];
	let failures = 0;
	const fetch = async (request) => {
		calls.push([request.method, request.url, request.headers.get("content-type"), request.headers.get("x-hook"), await request.clone().text()]);
		if (request.url.includes("/flaky") && ++failures < 3) return new Response("busy", { status: 503 });
		if (request.url.includes("/missing")) return new Response("no", { status: 404 });
		return Response.json({ url: request.url, failures });
	};
	const api = ky.create({
		prefixUrl: "https://api.example.com",
		fetch,
		retry: { limit: 3, delay: () => 1 },
		hooks: { beforeRequest: [(request) => request.headers.set("x-hook", "1")] },
	});
	return {
		get: await api.get("users", { searchParams: { a: "b c" } }).json(),
		post: await api.post("users", { json: { name: "Ada" } }).json(),
		flaky: await api.get("flaky").json(),
		missing: await api.get("missing").catch((err) => [err instanceof HTTPError, err.response.status, err.message]),
		calls,
	};
}
