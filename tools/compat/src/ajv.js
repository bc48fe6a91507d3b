import Ajv from "ajv";

const schema = {
	type: "object",
	properties: {
		name: { type: "string", pattern: "^\\p{L}+$", minLength: 2 },
		age: { type: "integer", minimum: 0 },
		tags: { type: "array", items: { enum: ["a", "b"] }, uniqueItems: true },
		next: { $ref: "#" },
	},
	required: ["name"],
	additionalProperties: false,
};

export default async function () {
	const ajv = new Ajv({ allErrors: true });
	const validate = ajv.compile(schema);
	const good = validate({ name: "Zoë", age: 3, next: { name: "Ada" } });
	const bad = validate({ name: "a1", age: -1, tags: ["a", "a", "c"], x: 1, next: {} });
	return { good, bad, errors: ajv.errorsText(validate.errors, { separator: "\n" }).split("\n") };
}
