// A web service of Hono and zod, for the benchmark "packages" of cmd/sousbench.
import { Hono } from "hono";
import { z } from "zod";

const Order = z.object({
	id: z.string().min(1),
	email: z.email(),
	lines: z.array(z.object({ sku: z.string().regex(/^[A-Z]{2}-\d+$/), count: z.int().positive() })).min(1),
	note: z.string().max(200).optional(),
});

const app = new Hono();
app.get("/", (c) => c.json({ hello: c.req.query("name") ?? "world" }));
app.get("/orders/:id", (c) => c.json({ id: c.req.param("id") }));
app.post("/orders", async (c) => {
	const order = Order.safeParse(await c.req.json());
	if (!order.success) return c.json({ issues: order.error.issues.map((i) => i.message) }, 400);
	return c.json({ id: order.data.id, count: order.data.lines.reduce((sum, line) => sum + line.count, 0) }, 201);
});

const body = JSON.stringify({ id: "o1", email: "ada@example.com", lines: [{ sku: "AB-1", count: 2 }, { sku: "CD-22", count: 1 }] });

// Each call is a request that is routed, parsed and validated.
export default async function () {
	const res = await app.request("/orders", { method: "POST", body, headers: { "content-type": "application/json" } });
	return { status: res.status, body: await res.json() };
}
