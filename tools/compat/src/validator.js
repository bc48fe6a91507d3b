import validator from "validator";

export default async function () {
	const checks = {
		isEmail: ["a@b.co", "a@b", "ü@example.com"],
		isURL: ["https://a.b/c?d#e", "javascript:x", "example.com"],
		isUUID: ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "x"],
		isIBAN: ["GB82WEST12345698765432", "GB00WEST12345698765432"],
		isCreditCard: ["4111 1111 1111 1111", "4111111111111112"],
		isISO8601: ["2026-02-29", "2026-01-02T03:04:05Z", "x"],
		isIP: ["127.0.0.1", "::1", "300.1.1.1"],
		isJSON: ['{"a":1}', "{a}"],
		isStrongPassword: ["abc", "Abcdef1!"],
		isBase64: ["aGVsbG8=", "***"],
		isMobilePhone: ["+4915112345678", "12"],
		isISBN: ["978-3-16-148410-0", "1"],
	};
	const out = {};
	for (const [name, values] of Object.entries(checks)) out[name] = values.map((v) => validator[name](v));
	return { ...out, alpha: validator.isAlpha("Grüße", "de-DE"), normalized: validator.normalizeEmail("A.B+c@GMail.com"), escaped: validator.escape("<a href='x'>&</a>"), trimmed: validator.trim("  x "), equal: validator.equals("a", "a") };
}
