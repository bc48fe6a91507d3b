// Uses a running server by the client that openapi-typescript and openapi-fetch make of its
// document: publish a function, call it, list its activations in pages, and read an error.
// Usage: node client.js URL. It exits with 1 if an answer is not the expected one.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };

type Activation = components["schemas"]["Activation"];

const client = createClient<paths>({ baseUrl: process.argv[2] });
const names = { tenant: "t_acme01", namespace: "default" };
const path = { ...names, function: "greet" };

function must<T>(what: string, answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) {
    throw new Error(`${what}: got ${answer.response.status} ${JSON.stringify(answer.error)}, want an answer`);
  }
  return answer.data;
}

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

const source = `export default (event) => ({ statusCode: 200, body: "hello " + (event.name ?? event.rawPath) });`;
const base = "/v1/tenants/{tenant}/namespaces/{namespace}/functions";
must("create", await client.POST(base, { params: { path: names }, body: { name: "greet" } }));
const draft = must("draft", await client.PUT(`${base}/{function}/draft`, { params: { path }, body: { files: { "function.js": btoa(source) } } }));
const version = must("publish", await client.POST(`${base}/{function}/versions`, { params: { path }, body: { draft_id: draft.draft_id, alias: "prod" } }));
same("version", version.version, 1);

for (const name of ["Ada", "Grace", "Lin"]) {
  const outcome = must("invoke", await client.POST(`${base}/{function}:invoke`, { params: { path }, body: { ref: { alias: "prod" }, event: { name } } }));
  same("status", outcome.status, "success");
  same("result", "result" in outcome && outcome.result, { statusCode: 200, body: `hello ${name}` });
}

const web = must("web", await client.GET("/v1/web/{tenant}/{namespace}/{function}/{alias}/{path}", {
  params: { path: { ...path, alias: "prod", path: "there" } }, parseAs: "text",
}));
same("web", web, "hello /v1/web/t_acme01/default/greet/prod/there");

const found: Activation[] = [];
for (let cursor: string | undefined; ; ) {
  const page = must("list", await client.GET("/v1/tenants/{tenant}/activations", {
    params: { path: { tenant: names.tenant }, query: { namespace: "default", function: "greet", limit: 2, cursor } },
  }));
  found.push(...(page.items ?? []));
  if (page.next_cursor === null) break;
  cursor = page.next_cursor;
}
same("activations", found.map((a) => a.status), ["success", "success", "success", "success"]);

const missing = await client.GET(`${base}/{function}`, { params: { path: { ...names, function: "ghost" } } });
same("status of a missing function", missing.response.status, 404);
same("code of a missing function", missing.error?.code, "CS_FUNCTION_NOT_FOUND");
