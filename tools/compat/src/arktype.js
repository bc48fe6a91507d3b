import { type } from "arktype";

const User = type({
	name: "string > 1",
	"age?": "0 <= number.integer < 150",
	email: "string.email",
	tags: "('a' | 'b')[]",
	created: "string.date.iso.parse",
});

export default async function () {
	const good = User({ name: "Ada", age: 36, email: "ada@example.com", tags: ["a"], created: "2026-01-02T03:04:05.000Z" });
	const bad = User({ name: "A", age: 1.5, email: "x", tags: ["c"], created: "2026-01-02T03:04:05.000Z" });
	return {
		good,
		bad: bad instanceof type.errors ? bad.summary : null,
		extends: type("'a'").extends("string"),
		narrowed: type("string").narrow((s, ctx) => s.startsWith("x") || ctx.mustBe("started with x"))("y").summary,
		schema: type({ a: "number", b: "string?" === 0 ? "string" : "string[]" }).toJsonSchema(),
	};
}
