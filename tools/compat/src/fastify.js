import Fastify from "fastify";
import { Readable } from "node:stream";

export default async function () {
	const app = Fastify();
	const order = [];
	app.addHook("onRequest", async () => { order.push("onRequest"); });
	app.addHook("onResponse", async () => { order.push("onResponse"); });
	app.register(async (api) => {
		api.decorateRequest("tenant", "");
		api.addHook("preHandler", async (req) => { req.tenant = "acme"; });
		api.get("/users/:id", {
			schema: {
				params: { type: "object", properties: { id: { type: "integer" } } },
				response: { 200: { type: "object", properties: { id: { type: "integer" }, tenant: { type: "string" } } } },
			},
		}, async (req) => ({ id: req.params.id, tenant: req.tenant, hidden: true }));
		api.post("/users", { schema: { body: { type: "object", required: ["name"], properties: { name: { type: "string" } } } } }, async (req, reply) => reply.code(201).send({ created: req.body.name }));
	}, { prefix: "/api" });
	app.get("/stream", (req, reply) => reply.type("text/plain").send(Readable.from(["a", "b"])));
	app.get("/throw", async () => {
		throw Object.assign(new Error("on purpose"), { statusCode: 418 });
	});
	const out = [];
	for (const request of [
		"/api/users/7", "/api/users/x", "/stream", "/throw", "/none",
		{ method: "POST", url: "/api/users", payload: { name: "Ada" } },
		{ method: "POST", url: "/api/users", payload: {} },
	]) {
		const res = await app.inject(request);
		const { date, ...headers } = res.headers;
		out.push([res.statusCode, res.statusMessage, headers, typeof date, res.body]);
	}
	await app.close();
	return { out, order };
}
