import CryptoJS from "crypto-js";

export default async function () {
	const key = CryptoJS.enc.Hex.parse("000102030405060708090a0b0c0d0e0f");
	const iv = CryptoJS.enc.Hex.parse("101112131415161718191a1b1c1d1e1f");
	const encrypted = CryptoJS.AES.encrypt("message é", key, { iv });
	const salted = CryptoJS.AES.encrypt("secret", "passphrase").toString();
	return {
		md5: CryptoJS.MD5("x").toString(),
		sha512: CryptoJS.SHA512("é").toString(CryptoJS.enc.Base64),
		sha3: CryptoJS.SHA3("x", { outputLength: 256 }).toString(),
		hmac: CryptoJS.HmacSHA256("text", "key").toString(),
		pbkdf2: CryptoJS.PBKDF2("pass", "salt", { keySize: 8, iterations: 10 }).toString(),
		aes: encrypted.toString(),
		back: encrypted.ciphertext && CryptoJS.AES.decrypt(encrypted.toString(), key, { iv }).toString(CryptoJS.enc.Utf8),
		salted: CryptoJS.AES.decrypt(salted, "passphrase").toString(CryptoJS.enc.Utf8),
		random: CryptoJS.lib.WordArray.random(16).sigBytes,
	};
}
