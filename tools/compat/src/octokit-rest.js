import { Octokit } from "@octokit/rest";

export default async function () {
	const calls = [];
	const fetch = async (url, init) => {
		const headers = new Headers(init.headers);
		calls.push([init.method, String(url), headers.get("authorization"), headers.get("accept"), init.body ?? null]);
		const page = new URL(url).searchParams.get("page") ?? "1";
		const headersOut = { "content-type": "application/json; charset=utf-8" };
		if (String(url).includes("/missing")) return new Response('{"message":"Not Found"}', { status: 404, headers: headersOut });
		if (init.method === "POST") return new Response('{"number":7}', { status: 201, headers: headersOut });
		if (page === "1") headersOut.link = '<https://api.github.com/repos/o/r/issues?per_page=2&page=2>; rel="next"';
		return new Response(JSON.stringify([{ number: Number(page) * 10 }]), { headers: headersOut });
	};
	const log = { debug() {}, info() {}, warn() {}, error() {} };
	const octokit = new Octokit({ auth: "token123", request: { fetch }, log });
	const created = await octokit.rest.issues.create({ owner: "o", repo: "r", title: "é", labels: ["a"] });
	const all = await octokit.paginate(octokit.rest.issues.listForRepo, { owner: "o", repo: "r", per_page: 2 });
	const missing = await octokit.request("GET /repos/{owner}/{repo}", { owner: "o", repo: "missing" }).catch((err) => [err.name, err.status, err.message]);
	return { created: [created.status, created.data], all: all.map((i) => i.number), missing, calls, endpoint: octokit.request.endpoint("GET /a/{b}{?c,d}", { b: "x/y", c: "1 2" }).url };
}
