import { z } from "zod";

const User = z.object({
	name: z.string().min(2).max(40).trim(),
	email: z.email(),
	age: z.coerce.number().int().positive().optional(),
	tags: z.array(z.enum(["a", "b"])).default([]),
	address: z.discriminatedUnion("kind", [
		z.object({ kind: z.literal("home"), street: z.string().regex(/^\p{Lu}/u) }),
		z.object({ kind: z.literal("box"), number: z.int32() }),
	]),
});

export default async function () {
	const good = User.parse({ name: " Ada ", email: "ada@example.com", age: "36", address: { kind: "home", street: "Éclair 1" } });
	const bad = User.safeParse({ name: "A", email: "none", tags: ["c"], address: { kind: "box", number: 1.5 } });
	const refined = await z.string().refine(async (s) => s.length === 3, "three letters").safeParseAsync("four");
	return {
		good,
		issues: bad.error.issues.map((i) => [i.path.join("."), i.code, i.message]),
		tree: z.treeifyError(bad.error),
		refined: refined.error.issues[0].message,
		schema: z.toJSONSchema(User, { io: "input" }),
		formats: [z.uuid().safeParse("x").success, z.iso.datetime().safeParse("2026-01-02T03:04:05Z").success, z.emoji().safeParse("👍").success, z.url().safeParse("https://a.b/c").success],
	};
}
