import * as v from "valibot";

const Login = v.pipe(
	v.object({
		email: v.pipe(v.string(), v.trim(), v.email("not an email")),
		password: v.pipe(v.string(), v.minLength(8), v.regex(/[0-9]/u, "no digit")),
		again: v.string(),
	}),
	v.forward(v.partialCheck([["password"], ["again"]], (i) => i.password === i.again, "not equal"), ["again"]),
);

export default async function () {
	const good = v.parse(Login, { email: " a@b.co ", password: "secret12", again: "secret12" });
	const bad = v.safeParse(Login, { email: "x", password: "short", again: "short" });
	return {
		good,
		flat: v.flatten(bad.issues),
		emoji: v.is(v.pipe(v.string(), v.emoji()), "😀"),
		graphemes: v.is(v.pipe(v.string(), v.maxLength(3)), "abcd"),
		variant: v.parse(v.variant("t", [v.object({ t: v.literal(1), x: v.number() }), v.object({ t: v.literal(2) })]), { t: 2 }),
	};
}
