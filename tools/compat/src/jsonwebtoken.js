import jwt from "jsonwebtoken";

export default async function () {
	const token = jwt.sign({ sub: "ada", iat: 1760000000 }, "secret", { noTimestamp: false, audience: "test" });
	const errors = [];
	for (const [t, key, options] of [
		[token, "other", {}],
		[token, "secret", { audience: "x" }],
		[jwt.sign({ exp: 1 }, "secret"), "secret", {}],
		["a.b", "secret", {}],
	]) {
		try {
			jwt.verify(t, key, options);
		} catch (err) {
			errors.push([err.name, err.message]);
		}
	}
	const async = await new Promise((resolve, reject) => jwt.sign({ a: 1, iat: 1 }, "secret", { algorithm: "HS512" }, (err, t) => (err ? reject(err) : resolve(t))));
	return { token, verified: jwt.verify(token, "secret", { audience: "test" }), decoded: jwt.decode(token, { complete: true }).header, errors, async };
}
