import Joi from "joi";

const schema = Joi.object({
	username: Joi.string().alphanum().min(3).required(),
	birth: Joi.number().integer().min(1900),
	email: Joi.string().email({ tlds: { allow: ["com"] } }),
	at: Joi.date().iso(),
	repeat: Joi.ref("username"),
})
	.with("birth", "email")
	.xor("birth", "at");

export default async function () {
	const good = schema.validate({ username: "ada36", birth: "1912", email: "a@example.com" });
	const bad = schema.validate({ username: "a!", birth: 1, at: "x", repeat: "b" }, { abortEarly: false });
	return {
		good,
		bad: bad.error.details.map((d) => [d.path.join("."), d.type, d.message]),
		uri: Joi.attempt("https://example.com/a?b", Joi.string().uri()),
		external: await Joi.string().external(async (v) => v + "!").validateAsync("x"),
	};
}
