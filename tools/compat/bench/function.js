// A web service of Hono and zod, for the benchmark "packages" of cmd/sousbench.
import { Hono } from "hono";
import { z } from "zod";

const Order = z.object({
	id: z.string().min(1),
	email: z.email(),
	lines: z.array(z.object({ sku: z.string().regex(/^[A-Z]{2}-\d+$/), count: z.int().positive() })).min(1),
	note: z.string().max(200).optional(),
});

const Greeting = z.object({ name: z.string().min(1).max(50), times: z.coerce.number().int().optional() });

const app = new Hono();
app.get("/hello/:name", (c) => {
	const { name, times } = Greeting.parse({ name: c.req.param("name"), times: c.req.query("times") });
	return c.json({ hello: name, times });
});
app.get("/orders/:id", (c) => c.json({ id: c.req.param("id") }));
app.post("/orders", async (c) => {
	const order = Order.safeParse(await c.req.json());
	if (!order.success) return c.json({ issues: order.error.issues.map((i) => i.message) }, 400);
	return c.json({ id: order.data.id, count: order.data.lines.reduce((sum, line) => sum + line.count, 0) }, 201);
});

// Each call is a request that is routed and validated, and its answer.
export default async function (event) {
	const res = await app.request("/hello/ada?times=2");
	return { statusCode: res.status, body: await res.text() };
}
