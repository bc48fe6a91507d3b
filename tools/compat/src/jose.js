import * as jose from "jose";

export default async function () {
	const secret = new TextEncoder().encode("a secret of at least 32 bytes...");
	const hs = await new jose.SignJWT({ scope: "read" }).setProtectedHeader({ alg: "HS256" }).setSubject("ada").setIssuedAt(1760000000).setExpirationTime(4102444800).sign(secret);
	const verified = await jose.jwtVerify(hs, secret, { subject: "ada" });
	const out = { hs, payload: verified.payload };
	const refused = await jose.jwtVerify(hs.slice(0, -4) + "AAAA", secret).catch((err) => err.code);
	for (const alg of ["ES256", "RS256", "EdDSA"]) {
		const { publicKey, privateKey } = await jose.generateKeyPair(alg, { extractable: true });
		const token = await new jose.SignJWT({ alg }).setProtectedHeader({ alg }).sign(privateKey);
		const again = await jose.importJWK(await jose.exportJWK(publicKey), alg);
		out[alg] = (await jose.jwtVerify(token, again)).payload;
	}
	const jwe = await new jose.EncryptJWT({ a: 1 }).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).encrypt(secret.slice(0, 32));
	return { ...out, refused, jwe: (await jose.jwtDecrypt(jwe, secret.slice(0, 32))).payload, thumbprint: await jose.calculateJwkThumbprint({ kty: "oct", k: "AAAA" }) };
}
