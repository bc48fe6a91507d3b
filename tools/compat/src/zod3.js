import { z } from "zod3";

const Order = z
	.object({
		id: z.string().uuid(),
		lines: z.array(z.object({ sku: z.string(), count: z.number().int().min(1) })).nonempty(),
		note: z.string().nullish().transform((s) => s?.toUpperCase() ?? "-"),
		at: z.coerce.date(),
	})
	.strict();

export default async function () {
	const good = Order.parse({ id: "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", lines: [{ sku: "x", count: 2 }], note: "thanks", at: "2026-01-02T03:04:05Z" });
	const bad = Order.safeParse({ id: "1", lines: [], extra: true });
	return { good, issues: bad.error.issues.map((i) => [i.path, i.code, i.message]), flat: bad.error.flatten() };
}
