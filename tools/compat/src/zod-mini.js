import * as z from "zod/mini";

const Item = z.object({
	name: z.string().check(z.minLength(2), z.maxLength(5), z.toLowerCase()),
	price: z.optional(z.number().check(z.positive())),
	kind: z._default(z.union([z.literal("a"), z.literal("b")]), "a"),
});

export default async function () {
	const bad = z.safeParse(Item, { name: "X", price: -1, kind: "c" });
	return { good: z.parse(Item, { name: "ABC" }), issues: bad.error.issues.map((i) => [i.path, i.code]), keys: Object.keys(Item.shape) };
}
