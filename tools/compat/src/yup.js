import * as yup from "yup";

const schema = yup.object({
	name: yup.string().trim().required(),
	age: yup.number().integer().min(0).when("adult", { is: true, then: (s) => s.min(18) }),
	adult: yup.boolean().default(false),
	site: yup.string().url().nullable(),
	born: yup.date().max(new Date("2026-01-01T00:00:00Z")),
});

export default async function () {
	const good = await schema.validate({ name: " Ada ", age: "36", adult: "true", born: "1990-05-06T00:00:00Z" });
	let errors;
	try {
		await schema.validate({ age: 3.5, adult: true, site: "x" }, { abortEarly: false });
	} catch (err) {
		errors = [err.name, err.inner.map((e) => [e.path, e.type, e.message])];
	}
	return { good, errors, cast: yup.array(yup.number()).cast(["1", "2"]) };
}
