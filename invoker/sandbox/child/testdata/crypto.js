import { check, rejects, throws } from "./check.js";
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
export default async function () {
  check("uuid", /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), true);
  check("uuids differ", crypto.randomUUID() === crypto.randomUUID(), false);
  const a = new Uint8Array(32); check("random", [crypto.getRandomValues(a) === a, a.some((x) => x !== 0)], [true, true]);
  throws("too many", () => crypto.getRandomValues(new Uint8Array(65537)), "QuotaExceededError");
  throws("no array", () => crypto.getRandomValues([]), "TypeError");
  const abc = new TextEncoder().encode("abc");
  check("sha-1", hex(await crypto.subtle.digest("SHA-1", abc)), "a9993e364706816aba3e25717850c26c9cd0d89d");
  check("sha-256", hex(await crypto.subtle.digest({ name: "sha-256" }, abc)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  check("sha-384", hex(await crypto.subtle.digest("SHA-384", abc)).slice(0, 16), "cb00753f45a35e8b");
  check("sha-512", hex(await crypto.subtle.digest("SHA-512", abc)).slice(0, 16), "ddaf35a193617aba");
  await rejects("md5", crypto.subtle.digest("MD5", abc), "NotSupportedError");
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode("key"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const data = new TextEncoder().encode("The quick brown fox jumps over the lazy dog");
  const mac = await crypto.subtle.sign("HMAC", key, data);
  check("hmac", hex(mac), "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
  check("verify", [await crypto.subtle.verify("HMAC", key, mac, data), await crypto.subtle.verify("HMAC", key, mac, abc)], [true, false]);
  check("key", [key.type, key.algorithm.name, key.algorithm.hash.name, key.extractable, key.usages, key instanceof CryptoKey], ["secret", "HMAC", "SHA-256", false, ["sign", "verify"], true]);
  await rejects("not extractable", crypto.subtle.exportKey("raw", key), "InvalidAccessError");
  const only = await crypto.subtle.importKey("raw", abc, { name: "HMAC", hash: { name: "SHA-512" } }, true, ["verify"]);
  await rejects("usage", crypto.subtle.sign("HMAC", only, data), "InvalidAccessError");
  check("export", hex(await crypto.subtle.exportKey("raw", only)), "616263");
  await rejects("format", crypto.subtle.importKey("spki", abc, { name: "HMAC", hash: "SHA-256" }, true, ["sign"]), "NotSupportedError");
}
