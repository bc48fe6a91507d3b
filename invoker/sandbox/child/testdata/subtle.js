import { check, rejects, throws } from "./check.js";
const s = crypto.subtle;
const utf8 = (t) => new TextEncoder().encode(t);
const bytes = (h) => new Uint8Array(h.match(/../g).map((x) => parseInt(x, 16)));
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
const names = (k) => [k.type, k.extractable, k.usages, k.algorithm];
const data = utf8("the data");
// again exports a key, imports it, and exports it.
async function again(format, key, algorithm) {
  const out = await s.exportKey(format, key), k = await s.importKey(format, out, algorithm, true, key.usages), twice = await s.exportKey(format, k);
  return format === "jwk" ? [k, JSON.stringify(out) === JSON.stringify(twice)] : [k, hex(out) === hex(twice)];
}

async function secrets() {
  const hmac = await s.generateKey({ name: "hmac", hash: "SHA-512" }, true, ["verify", "sign"]);
  check("hmac", [hmac.type, hmac.usages, hmac.algorithm.length, hmac.algorithm.hash.name, hmac.algorithm.name], ["secret", ["sign", "verify"], 1024, "SHA-512", "HMAC"]);
  for (const format of ["raw", "jwk"]) {
    const [k, equal] = await again(format, hmac, { name: "HMAC", hash: "SHA-512" });
    check("hmac " + format, [equal, await s.verify("HMAC", k, await s.sign("HMAC", hmac, data), data)], [true, true]);
  }
  const jwk = { kty: "oct", k: "AAECAw", alg: "HS256", key_ops: ["sign"], ext: true, use: "sig" }, algorithm = { name: "HMAC", hash: "SHA-256" };
  const k = await s.importKey("jwk", jwk, algorithm, true, ["sign"]), out = await s.exportKey("jwk", k);
  check("jwk", [out.kty, out.k, out.alg, out.key_ops, out.ext], ["oct", "AAECAw", "HS256", ["sign"], true]);
  await rejects("alg", s.importKey("jwk", jwk, { name: "HMAC", hash: "SHA-512" }, true, ["sign"]), "DataError");
  await rejects("key_ops", s.importKey("jwk", jwk, algorithm, true, ["verify"]), "DataError");
  await rejects("use", s.importKey("jwk", { ...jwk, use: "enc" }, algorithm, true, ["sign"]), "DataError");
  await rejects("ext", s.importKey("jwk", { ...jwk, ext: false }, algorithm, true, ["sign"]), "DataError");
  await rejects("kty", s.importKey("jwk", { ...jwk, kty: "RSA" }, algorithm, true, ["sign"]), "DataError");
  await rejects("no jwk", s.importKey("jwk", data, algorithm, true, ["sign"]), "TypeError");
  await rejects("empty", s.importKey("raw", new Uint8Array(), algorithm, true, ["sign"]), "DataError");
  await rejects("long", s.importKey("raw", data, { ...algorithm, length: 100 }, true, ["sign"]), "DataError");
  await rejects("usage of another", s.importKey("raw", data, algorithm, true, ["encrypt"]), "SyntaxError");
  await rejects("no usage", s.importKey("raw", data, algorithm, true, []), "SyntaxError");
  await rejects("unknown usage", s.importKey("raw", data, algorithm, true, ["read"]), "TypeError");
  await rejects("unknown format", s.importKey("der", data, algorithm, true, ["sign"]), "TypeError");
  await rejects("no hash", s.importKey("raw", data, "HMAC", true, ["sign"]), "TypeError");
  await rejects("unknown hash", s.importKey("raw", data, { name: "HMAC", hash: "MD5" }, true, ["sign"]), "NotSupportedError");
  await rejects("no name", s.generateKey({}, true, ["sign"]), "TypeError");
  await rejects("unknown", s.generateKey("DES", true, ["sign"]), "NotSupportedError");
  await rejects("no operation", s.sign("AES-GCM", k, data), "NotSupportedError");
  await rejects("another algorithm", s.encrypt({ name: "AES-GCM", iv: data }, k, data), "InvalidAccessError");
  await rejects("no key", s.sign("HMAC", {}, data), "TypeError");
  await rejects("no data", s.sign("HMAC", k, "text"), "TypeError");
  await rejects("few arguments", s.sign("HMAC"), "TypeError");
}

async function ciphers() {
  const raw = bytes("2b7e151628aed2a6abf7158809cf4f3c"), block = bytes("6bc1bee22e409f96e93d7e117393172a"), iv = bytes("000102030405060708090a0b0c0d0e0f");
  const key = (name, usages = ["encrypt", "decrypt"]) => s.importKey("raw", raw, name, true, usages);
  const cbc = await key("AES-CBC"), sealed = await s.encrypt({ name: "AES-CBC", iv }, cbc, block); // SP 800-38A, F.2.1
  check("cbc", [hex(sealed).slice(0, 32), sealed.byteLength, hex(await s.decrypt({ name: "AES-CBC", iv }, cbc, sealed))], ["7649abac8119b246cee98e9b12e9197d", 32, hex(block)]);
  await rejects("cbc broken", s.decrypt({ name: "AES-CBC", iv }, cbc, block), "OperationError");
  await rejects("cbc size", s.decrypt({ name: "AES-CBC", iv }, cbc, data.subarray(1)), "OperationError");
  await rejects("cbc iv", s.encrypt({ name: "AES-CBC", iv: data }, cbc, block), "OperationError");
  await rejects("no iv", s.encrypt("AES-CBC", cbc, block), "TypeError");
  const ctr = await key("AES-CTR"), counter = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"); // F.5.1
  check("ctr", hex(await s.encrypt({ name: "AES-CTR", counter, length: 64 }, ctr, block)), "874d6191b620e3261bef6864990db6ce");
  const full = new Uint8Array(16).fill(255), zero = new Uint8Array(16);
  const two = await s.encrypt({ name: "AES-CTR", counter: full, length: 128 }, ctr, new Uint8Array(32)), first = await s.encrypt({ name: "AES-CTR", counter: zero, length: 128 }, ctr, zero);
  check("ctr around", hex(two).slice(32), hex(first));
  const near = full.slice(), base = full.slice(); base[15] = 0xfc;
  const around = await s.encrypt({ name: "AES-CTR", counter: near, length: 2 }, ctr, new Uint8Array(40)), from = await s.encrypt({ name: "AES-CTR", counter: base, length: 2 }, ctr, new Uint8Array(24));
  check("ctr around few", [hex(around).slice(32), hex(await s.decrypt({ name: "AES-CTR", counter: near, length: 2 }, ctr, around))], [hex(from), hex(new Uint8Array(40))]);
  await rejects("ctr exhausted", s.encrypt({ name: "AES-CTR", counter, length: 1 }, ctr, new Uint8Array(33)), "OperationError");
  await rejects("ctr length", s.encrypt({ name: "AES-CTR", counter, length: 129 }, ctr, block), "OperationError");
  await rejects("ctr counter", s.encrypt({ name: "AES-CTR", counter: data, length: 1 }, ctr, block), "OperationError");
  const gcm = await s.importKey("raw", new Uint8Array(16), "AES-GCM", true, ["encrypt", "decrypt"]), nonce = new Uint8Array(12);
  check("gcm", hex(await s.encrypt({ name: "AES-GCM", iv: nonce }, gcm, new Uint8Array(16))), "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf");
  for (const parameters of [{}, { additionalData: data }, { tagLength: 96 }, { tagLength: 32, additionalData: data }, { iv: iv, tagLength: 104 }]) {
    const p = { name: "AES-GCM", iv: nonce, ...parameters }, secret = await s.encrypt(p, gcm, data), wrong = new Uint8Array(secret.slice(0));
    wrong[0] ^= 1;
    check("gcm " + JSON.stringify(parameters), [secret.byteLength, hex(await s.decrypt(p, gcm, secret))], [data.length + (p.tagLength ?? 128) / 8, hex(data)]);
    await rejects("gcm broken", s.decrypt(p, gcm, wrong), "OperationError");
    await rejects("gcm other data", s.decrypt({ ...p, additionalData: iv }, gcm, secret), "OperationError");
  }
  await rejects("gcm tag", s.encrypt({ name: "AES-GCM", iv: nonce, tagLength: 100 }, gcm, data), "OperationError");
  await rejects("gcm short", s.decrypt({ name: "AES-GCM", iv: nonce }, gcm, data), "OperationError");
  await rejects("aes length", s.importKey("raw", data, "AES-GCM", true, ["encrypt"]), "DataError");
  await rejects("aes generated", s.generateKey({ name: "AES-GCM", length: 100 }, true, ["encrypt"]), "OperationError");
  const made = await s.generateKey({ name: "AES-GCM", length: 256 }, true, ["unwrapKey", "wrapKey", "encrypt"]), [k, equal] = await again("jwk", made, "AES-GCM");
  check("aes", [equal, names(k), (await s.exportKey("jwk", k)).alg], [true, ["secret", true, ["encrypt", "wrapKey", "unwrapKey"], k.algorithm], "A256GCM"]);
  check("same members", [k.algorithm === k.algorithm, k.algorithm.length], [true, 256]);

  const kek = await s.importKey("raw", bytes("000102030405060708090a0b0c0d0e0f"), "AES-KW", true, ["wrapKey", "unwrapKey"]); // RFC 3394, 4.1
  const inner = await s.importKey("raw", bytes("00112233445566778899aabbccddeeff"), "AES-CBC", true, ["encrypt"]);
  const wrapped = await s.wrapKey("raw", inner, kek, "AES-KW");
  check("kw", hex(wrapped), "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5");
  const unwrapped = await s.unwrapKey("raw", wrapped, kek, "AES-KW", "AES-CBC", true, ["decrypt"]);
  check("unwrapped", [hex(await s.exportKey("raw", unwrapped)), unwrapped.usages], ["00112233445566778899aabbccddeeff", ["decrypt"]]);
  await rejects("kw broken", s.unwrapKey("raw", new Uint8Array(24), kek, "AES-KW", "AES-CBC", true, ["decrypt"]), "OperationError");
  const p = { name: "AES-GCM", iv: nonce }, web = await s.wrapKey("jwk", inner, made, p);
  check("jwk wrapped", hex(await s.exportKey("raw", await s.unwrapKey("jwk", web, made, p, "AES-CBC", true, ["encrypt"]))), "00112233445566778899aabbccddeeff");
  await rejects("may not wrap", s.wrapKey("raw", inner, gcm, p), "InvalidAccessError");
  const hidden = await s.importKey("raw", raw, "AES-CBC", false, ["encrypt"]);
  await rejects("may not be wrapped", s.wrapKey("raw", hidden, made, p), "InvalidAccessError");
}

async function attacked() {
  const pair = await s.generateKey({ name: "RSA-PSS", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }, true, ["sign", "verify"]);
  await rejects("a salt of 4 GB", s.sign({ name: "RSA-PSS", saltLength: 4294967295 }, pair.privateKey, data), "OperationError");
  const huge = { ...await s.exportKey("jwk", pair.publicKey) };
  huge.n = "_".repeat(4000);
  await rejects("a huge modulus", s.importKey("jwk", huge, { name: "RSA-PSS", hash: "SHA-256" }, true, ["verify"]), "DataError");
  const gcm = await s.generateKey({ name: "AES-GCM", length: 128 }, true, ["wrapKey", "unwrapKey"]), p = { name: "AES-GCM", iv: new Uint8Array(12) };
  const inner = await s.generateKey({ name: "AES-CBC", length: 128 }, true, ["encrypt"]), wrapped = await s.wrapKey("jwk", inner, gcm, p);
  let leak;
  for (const name of ["oth", "d", "p"]) Object.defineProperty(Object.prototype, name, { get() { leak = this.k; }, configurable: true });
  const made = await s.unwrapKey("jwk", wrapped, gcm, p, "AES-CBC", false, ["encrypt"]);
  for (const name of ["oth", "d", "p"]) delete Object.prototype[name];
  check("not read through a prototype", [leak, made.extractable], [undefined, false]);
  Object.defineProperty(Object.prototype, "k", { set() { leak = "set"; }, configurable: true });
  const jwk = await s.exportKey("jwk", inner);
  delete Object.prototype.k;
  check("not written through a prototype", [leak, Object.hasOwn(jwk, "k")], [undefined, true]);
}

async function derived() {
  const key = (name, secret) => s.importKey("raw", secret, name, false, ["deriveBits", "deriveKey"]);
  const password = await key("PBKDF2", utf8("password")), pbkdf2 = { name: "PBKDF2", hash: "SHA-1", salt: utf8("salt"), iterations: 2 }; // RFC 6070
  check("pbkdf2", hex(await s.deriveBits(pbkdf2, password, 160)), "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957");
  await rejects("no iterations", s.deriveBits({ ...pbkdf2, iterations: 0 }, password, 160), "OperationError");
  await rejects("odd length", s.deriveBits(pbkdf2, password, 7), "OperationError");
  await rejects("no length", s.deriveBits(pbkdf2, password, null), "OperationError");
  check("type of a password", [password.type, password.extractable, password.usages], ["secret", false, ["deriveKey", "deriveBits"]]);
  await rejects("a usage of other keys", s.importKey("raw", data, "PBKDF2", false, ["encrypt"]), "SyntaxError");
  await rejects("extractable", s.importKey("raw", data, "PBKDF2", true, ["deriveBits"]), "SyntaxError");
  await rejects("not exported", s.exportKey("raw", password), "Error");
  const material = await key("HKDF", bytes("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b")), hkdf = { name: "HKDF", hash: "SHA-256", salt: bytes("000102030405060708090a0b0c"), info: bytes("f0f1f2f3f4f5f6f7f8f9") }; // RFC 5869, A.1
  check("hkdf", hex(await s.deriveBits(hkdf, material, 336)), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  await rejects("hkdf too long", s.deriveBits(hkdf, material, 255 * 256 + 8), "OperationError");
  const aes = await s.deriveKey(hkdf, material, { name: "AES-GCM", length: 128 }, true, ["encrypt"]);
  check("derived key", [hex(await s.exportKey("raw", aes)), aes.algorithm.length], ["3cb25f25faacd57a90434f64d0362f2a", 128]);
  const mac = await s.deriveKey(hkdf, material, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
  check("derived hmac", mac.algorithm.length, 512);
  await rejects("derived length", s.deriveKey(hkdf, material, { name: "AES-GCM", length: 100 }, true, ["encrypt"]), "OperationError");
  const bits = await s.importKey("raw", data, "HKDF", false, ["deriveBits"]);
  await rejects("may not derive keys", s.deriveKey(hkdf, bits, { name: "AES-GCM", length: 128 }, true, ["encrypt"]), "InvalidAccessError");
  for (const algorithm of [{ name: "ECDH", namedCurve: "P-256" }, { name: "ECDH", namedCurve: "P-521" }, { name: "X25519" }]) {
    const [a, b] = [await s.generateKey(algorithm, true, ["deriveBits", "deriveKey"]), await s.generateKey(algorithm, true, ["deriveBits"])], name = algorithm.name;
    const one = await s.deriveBits({ name, public: b.publicKey }, a.privateKey, null), other = await s.deriveBits({ name, public: a.publicKey }, b.privateKey, 128);
    check("exchange", [hex(one).slice(0, 32) === hex(other), one.byteLength, a.publicKey.usages, b.privateKey.usages], [true, { "P-256": 32, "P-521": 66 }[algorithm.namedCurve] ?? 32, [], ["deriveBits"]]);
    check("key of an exchange", (await s.deriveKey({ name, public: b.publicKey }, a.privateKey, { name: "AES-CBC", length: 256 }, true, ["decrypt"])).usages, ["decrypt"]);
    await rejects("too many bits", s.deriveBits({ name, public: b.publicKey }, a.privateKey, 1024), "OperationError");
    await rejects("private for public", s.deriveBits({ name, public: b.privateKey }, a.privateKey, 128), "InvalidAccessError");
    await rejects("no public", s.deriveBits({ name }, a.privateKey, 128), "TypeError");
    for (const format of ["raw", "spki", "jwk"]) check(`${name} ${format}`, (await again(format, a.publicKey, algorithm))[1], true);
    for (const format of ["pkcs8", "jwk"]) check(`${name} ${format}`, (await again(format, a.privateKey, algorithm))[1], true);
  }
  const other = await s.generateKey({ name: "ECDH", namedCurve: "P-384" }, true, ["deriveBits"]), mine = await s.generateKey({ name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]);
  await rejects("curves", s.deriveBits({ name: "ECDH", public: other.publicKey }, mine.privateKey, 128), "InvalidAccessError");
  await rejects("usage of a public key", s.importKey("raw", await s.exportKey("raw", mine.publicKey), { name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]), "SyntaxError");
}

async function signatures() {
  const rsa = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
  for (const [algorithm, parameters, alg] of [
    [{ name: "ECDSA", namedCurve: "P-256" }, { hash: "SHA-256" }], [{ name: "ECDSA", namedCurve: "P-384" }, { hash: "SHA-512" }], [{ name: "ECDSA", namedCurve: "P-521" }, { hash: { name: "SHA-1" } }],
    [{ name: "Ed25519" }, {}], [{ name: "RSASSA-PKCS1-v1_5", ...rsa }, {}, "RS256"], [{ name: "RSA-PSS", ...rsa, hash: "SHA-384" }, { saltLength: 20 }, "PS384"],
  ]) {
    const { name } = algorithm, p = { name, ...parameters }, { publicKey, privateKey } = await s.generateKey(algorithm, false, ["verify", "sign"]);
    check(name, [publicKey.type, publicKey.extractable, publicKey.usages, privateKey.type, privateKey.extractable, privateKey.usages, publicKey.algorithm.name], ["public", true, ["verify"], "private", false, ["sign"], name]);
    const signature = await s.sign(p, privateKey, data), wrong = new Uint8Array(signature.slice(0));
    wrong[5] ^= 1;
    check(name + " verify", [await s.verify(p, publicKey, signature, data), await s.verify(p, publicKey, signature, signature), await s.verify(p, publicKey, wrong, data), await s.verify(p, publicKey, new Uint8Array(3), data)], [true, false, false, false]);
    check(name + " size", signature.byteLength, { "P-256": 64, "P-384": 96, "P-521": 132 }[algorithm.namedCurve] ?? (name === "Ed25519" ? 64 : 256));
    for (const format of ["spki", "jwk"]) {
      const [k, equal] = await again(format, publicKey, algorithm);
      check(`${name} ${format}`, [equal, await s.verify(p, k, signature, data)], [true, true]);
    }
    if (alg) check(name + " alg", [(await s.exportKey("jwk", publicKey)).alg, publicKey.algorithm.modulusLength, [...publicKey.algorithm.publicExponent], publicKey.algorithm.hash.name], [alg, 2048, [1, 0, 1], algorithm.hash]);
    else check(name + " raw", (await again("raw", publicKey, algorithm))[1], true);
    await rejects(name + " sign with the public key", s.sign(p, publicKey, data), "InvalidAccessError");
    await rejects(name + " verify with the private key", s.verify(p, privateKey, signature, data), "InvalidAccessError");
    await rejects(name + " not extractable", s.exportKey("pkcs8", privateKey), "InvalidAccessError");
    await rejects(name + " spki of garbage", s.importKey("spki", data, algorithm, true, ["verify"]), "DataError");
    await rejects(name + " pkcs8 of garbage", s.importKey("pkcs8", data, algorithm, true, ["sign"]), "DataError");
    await rejects(name + " usage", s.importKey("spki", await s.exportKey("spki", publicKey), algorithm, true, ["sign"]), "SyntaxError");
    await rejects(name + " no private usage", s.generateKey(algorithm, true, ["verify"]), "SyntaxError");
    await rejects(name + " foreign usage", s.generateKey(algorithm, true, ["sign", "encrypt"]), "SyntaxError");
  }
  const ed = { kty: "OKP", crv: "Ed25519", d: "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }; // RFC 8037, A.1
  const signer = await s.importKey("jwk", ed, "Ed25519", true, ["sign"]);
  check("ed25519", hex(await s.sign("Ed25519", signer, utf8("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"))).slice(0, 32), "860c98d2297f3060a33f42739672d61b");
  for (const format of ["pkcs8", "jwk"]) check("ed25519 " + format, (await again(format, signer, "Ed25519"))[1], true);
  const order = Object.keys(await s.exportKey("jwk", signer));
  check("members", order.sort(), ["alg", "crv", "d", "ext", "key_ops", "kty", "x"]);
  await rejects("wrong half", s.importKey("jwk", { ...ed, x: ed.d }, "Ed25519", true, ["sign"]), "DataError");
  await rejects("crv", s.importKey("jwk", { ...ed, crv: "X25519" }, "Ed25519", true, ["sign"]), "DataError");
  const ec = await s.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]), web = await s.exportKey("jwk", ec.privateKey);
  for (const format of ["pkcs8", "jwk"]) check("ecdsa " + format, (await again(format, ec.privateKey, ec.privateKey.algorithm))[1], true);
  await rejects("another curve", s.importKey("jwk", web, { name: "ECDSA", namedCurve: "P-384" }, true, ["sign"]), "DataError");
  await rejects("spki of another curve", s.importKey("spki", await s.exportKey("spki", ec.publicKey), { name: "ECDSA", namedCurve: "P-384" }, true, ["verify"]), "DataError");
  await rejects("point", s.importKey("raw", new Uint8Array(65).fill(4), { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]), "DataError");
  await rejects("unknown curve", s.generateKey({ name: "ECDSA", namedCurve: "P-1" }, true, ["sign"]), "NotSupportedError");
  const point = new Uint8Array(await s.exportKey("raw", ec.publicKey)), short = point.slice(0, 33);
  short[0] = 2 + (point[64] & 1);
  check("compressed", hex(await s.exportKey("raw", await s.importKey("raw", short, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]))), hex(point));
  await rejects("exponent", s.generateKey({ name: "RSA-PSS", ...rsa, publicExponent: new Uint8Array([2]) }, true, ["sign"]), "OperationError");

  const oaep = await s.generateKey({ name: "RSA-OAEP", ...rsa, hash: "SHA-1" }, true, ["encrypt", "decrypt", "wrapKey", "unwrapKey"]), label = { name: "RSA-OAEP", label: data };
  check("oaep", [oaep.publicKey.usages, oaep.privateKey.usages, (await s.exportKey("jwk", oaep.publicKey)).alg], [["encrypt", "wrapKey"], ["decrypt", "unwrapKey"], "RSA-OAEP"]);
  const secret = await s.encrypt(label, oaep.publicKey, utf8("secret"));
  check("oaep decrypt", hex(await s.decrypt(label, oaep.privateKey, secret)), hex(utf8("secret")));
  await rejects("label", s.decrypt({ name: "RSA-OAEP" }, oaep.privateKey, secret), "OperationError");
  await rejects("too long", s.encrypt(label, oaep.publicKey, new Uint8Array(300)), "OperationError");
  for (const format of ["pkcs8", "jwk"]) {
    const [k, equal] = await again(format, oaep.privateKey, { name: "RSA-OAEP", hash: "SHA-1" });
    check("oaep " + format, [equal, hex(await s.decrypt(label, k, secret))], [true, hex(utf8("secret"))]);
  }
  const aes = await s.generateKey({ name: "AES-CBC", length: 192 }, true, ["encrypt"]), wrapped = await s.wrapKey("raw", aes, oaep.publicKey, "RSA-OAEP");
  check("oaep wrap", hex(await s.exportKey("raw", await s.unwrapKey("raw", wrapped, oaep.privateKey, "RSA-OAEP", "AES-CBC", true, ["encrypt"]))), hex(await s.exportKey("raw", aes)));
  const rsaJWK = await s.exportKey("jwk", oaep.privateKey);
  await rejects("alg of RSA", s.importKey("jwk", rsaJWK, { name: "RSA-OAEP", hash: "SHA-256" }, true, ["decrypt"]), "DataError");
  const { qi, ...partial } = rsaJWK;
  await rejects("part of RSA", s.importKey("jwk", partial, { name: "RSA-OAEP", hash: "SHA-1" }, true, ["decrypt"]), "Error");
  await rejects("raw of RSA", s.exportKey("raw", oaep.publicKey), "NotSupportedError");
}

export default async function () {
  await secrets();
  await ciphers();
  await attacked();
  await derived();
  await signatures();
  throws("no constructor", () => new CryptoKey(), "Illegal constructor");
}
