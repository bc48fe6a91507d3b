import got from "got";

// A hook answers in place of the network.
const respond = (options) => {
	const url = String(options.url);
	const status = url.includes("missing") ? 404 : 200;
	const body = JSON.stringify({ method: options.method, url, type: options.headers["content-type"] ?? null, body: options.body ?? options.json ?? null });
	return { status, body };
};

export default async function () {
	const { Readable } = await import("node:stream");
	const client = got.extend({
		prefixUrl: "https://api.example.com/v1",
		headers: { "user-agent": "test" },
		retry: { limit: 0 },
		hooks: {
			beforeRequest: [
				(options) => {
					const { status, body } = respond(options);
					const res = Readable.from([Buffer.from(body)]);
					return Object.assign(res, { statusCode: status, statusMessage: "", headers: { "content-type": "application/json" }, rawHeaders: [], trailers: {}, rawTrailers: [], httpVersion: "1.1", url: String(options.url), complete: true, req: { path: "/" } });
				},
			],
		},
	});
	return {
		get: await client.get("users", { searchParams: { a: "b c", n: 1 } }).json(),
		post: await client.post("users", { json: { name: "Ada" } }).json(),
		missing: await client.get("missing").catch((err) => [err.name, err.code, err.response.statusCode]),
		text: (await client("x")).body.length,
	};
}
