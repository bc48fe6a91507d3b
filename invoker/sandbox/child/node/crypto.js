// node:crypto. What is computed is computed in Go.
const { Buffer, FastBuffer, viewOf, isArrayBuffer } = require("internal/bytes");
const { coded, unsupportedError, invalidType, invalidValue, outOfRange, callback, checkString, checkInteger } = require("internal/errors");
const { nextTick } = require("process");

const bytes = (made) => new FastBuffer(made);
const encoded = (made, encoding) => (encoding && encoding !== "buffer" ? bytes(made).toString(encoding) : bytes(made));
const stream = () => require("stream");

// later makes of a function that computes one that calls back.
function later(compute, done) {
  callback(done);
  let result, error = null;
  try {
    result = compute();
  } catch (e) {
    error = e;
  }
  nextTick(() => (error ? done(error) : done(null, result)));
}

// A class of node:crypto is a stream, which is set up when it is used as one.
function streaming(C, update, final) {
  const setUp = (self) => {
    if (self._readableState) return;
    stream().Transform.call(self, self.streamOptions || {});
    self._transform = (chunk, encoding, done) => {
      try {
        const out = update(self, chunk, encoding);
        done(null, out);
      } catch (e) {
        done(e);
      }
    };
    self._flush = (done) => {
      try {
        self.push(final(self));
        done();
      } catch (e) {
        done(e);
      }
    };
  };
  for (const name of ["on", "once", "addListener", "emit", "pipe", "write", "end", "read", "resume", "pause", "setEncoding", "destroy", "removeListener", "unpipe", Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator")]) {
    C.prototype[name] = function (...args) {
      if (!this._readableState) {
        Object.setPrototypeOf(this, mixed());
        setUp(this);
      }
      return this[name](...args);
    };
  }
  let proto;
  const mixed = () => {
    if (!proto) {
      proto = Object.create(stream().Transform.prototype);
      for (const key of Reflect.ownKeys(C.prototype)) if (!(key in proto) || key === "constructor") Object.defineProperty(proto, key, Object.getOwnPropertyDescriptor(C.prototype, key));
      Object.defineProperty(C, Symbol.hasInstance, { value: (o) => C.prototype.isPrototypeOf(o) || proto.isPrototypeOf(o) });
    }
    return proto;
  };
}

const state = Symbol("state");

function Hash(algorithm, options) {
  if (!new.target) return new Hash(algorithm, options);
  if (algorithm instanceof Hash) this[state] = { name: algorithm[state].name, hash: natives.copyHash(algorithm[state].name, algorithm[state].hash), done: false };
  else {
    checkString(algorithm, "algorithm");
    this[state] = { name: algorithm, hash: natives.hash(algorithm), done: false };
  }
  this[state].length = options && options.outputLength;
}
const updated = (self, data, encoding) => {
  const s = self[state];
  if (s.done) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
  if (typeof data === "string" && (encoding === undefined || encoding === "utf8" || encoding === "utf-8" || encoding === "buffer")) natives.update(s.hash, data);
  else natives.update(s.hash, viewOf(data, "data", encoding));
};
const digested = (self, encoding) => {
  const s = self[state];
  if (s.done) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
  s.done = true;
  const out = natives.digest(s.hash);
  if (s.length !== undefined && s.length !== out.byteLength) throw coded(Error, "ERR_CS_UNSUPPORTED", "node:crypto: outputLength is not available in functions");
  return encoded(out, encoding);
};
Hash.prototype.update = function update(data, encoding) { updated(this, data, encoding); return this; };
Hash.prototype.digest = function digest(encoding) { return digested(this, encoding); };
Hash.prototype.copy = function copy(options) {
  if (this[state].done) throw coded(Error, "ERR_CRYPTO_HASH_FINALIZED", "Digest already called");
  return new Hash(this, options);
};
streaming(Hash, (self, chunk, encoding) => { updated(self, chunk, encoding); }, (self) => digested(self));

function Hmac(algorithm, key) {
  if (!new.target) return new Hmac(algorithm, key);
  checkString(algorithm, "hmac");
  this[state] = { hash: natives.hmac(algorithm, secretOf(key)), done: false };
}
Hmac.prototype.update = function update(data, encoding) { updated(this, data, encoding); return this; };
Hmac.prototype.digest = function digest(encoding) {
  if (this[state].done) return encoding && encoding !== "buffer" ? "" : Buffer.alloc(0);
  return digested(this, encoding);
};
streaming(Hmac, (self, chunk, encoding) => { updated(self, chunk, encoding); }, (self) => digested(self));

// Keys.

class KeyObject {
  #handle;
  constructor(type, handle) {
    if (type !== "secret" && type !== "public" && type !== "private") throw invalidValue("type", type);
    this.type = type;
    this.#handle = handle;
  }
  static handleOf(key) { return key.#handle; }
  static is(key) { return typeof key === "object" && key !== null && #handle in key; }
  static from(key) { throw unsupportedError("crypto", "KeyObject.from"); }
  get symmetricKeySize() { return this.type === "secret" ? this.#handle.length : undefined; }
  get asymmetricKeyType() { return this.type === "secret" ? undefined : natives.keyInfo(this.#handle)[0]; }
  get asymmetricKeyDetails() {
    if (this.type === "secret") return undefined;
    const [type, a, b] = natives.keyInfo(this.#handle);
    if (type === "rsa") return { modulusLength: a, publicExponent: BigInt(b) };
    return type === "ec" ? { namedCurve: a } : {};
  }
  equals(other) {
    if (!isKey(other)) throw invalidType("otherKeyObject", "KeyObject", other);
    if (other.type !== this.type) return false;
    return this.type === "secret" ? this.#handle.length === other.#handle.length && natives.equal(this.#handle, other.#handle) : natives.sameKey(this.#handle, other.#handle);
  }
  export(options = {}) {
    if (this.type === "secret") {
      if (options.format === "jwk") return { kty: "oct", k: this.#handle.toString("base64url") };
      return Buffer.from(this.#handle);
    }
    if (options.format === "jwk") return natives.toJWK(this.#handle);
    if (options.cipher) throw unsupportedError("crypto", "export of an encrypted key");
    if (options.format !== "pem" && options.format !== "der") throw invalidValue("options.format", options.format);
    if (!options.type) throw invalidValue("options.type", options.type);
    const out = natives.exportKey(this.#handle, options.type, options.format === "pem");
    return typeof out === "string" ? out : bytes(out);
  }
  toCryptoKey() { throw unsupportedError("crypto", "KeyObject.toCryptoKey"); }
  get [Symbol.toStringTag]() { return "KeyObject"; }
}
const handleOf = KeyObject.handleOf, isKey = KeyObject.is;
delete KeyObject.handleOf;
delete KeyObject.is;
class SecretKeyObject extends KeyObject {}
class PublicKeyObject extends KeyObject {}
class PrivateKeyObject extends KeyObject {}

// secretOf returns a symmetric key as a view.
function secretOf(key, name = "key", encoding) {
  if (isKey(key)) {
    if (key.type !== "secret") throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${key.type}, expected secret.`);
    return handleOf(key);
  }
  return viewOf(key, name, encoding);
}

// readKey returns the handle of an asymmetric key in any of its forms.
function readKey(input, isPrivate) {
  if (isKey(input)) {
    if (input.type === "secret" || (isPrivate && input.type !== "private")) {
      throw coded(TypeError, "ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE", `Invalid key object type ${input.type}, expected ${isPrivate ? "private" : "public or private"}.`);
    }
    return !isPrivate && input.type === "private" ? natives.publicOf(handleOf(input)) : handleOf(input);
  }
  let key = input, format = "pem", type, encoding;
  if (input && typeof input === "object" && !ArrayBuffer.isView(input) && !isArrayBuffer(input)) {
    ({ key, format = "pem", type, encoding } = input);
    if (isKey(key)) return readKey(key, isPrivate);
    if (format === "jwk") return natives.fromJWK(key, isPrivate);
  }
  if (typeof key !== "string" && !ArrayBuffer.isView(key) && !isArrayBuffer(key)) throw invalidType("key", ["string", "ArrayBuffer", "Buffer", "TypedArray", "DataView", "KeyObject", "CryptoKey"], key);
  return natives.readKey(viewOf(key, "key", encoding), format, type || (isPrivate ? "pkcs8" : "spki"), isPrivate);
}

const createSecretKey = (key, encoding) => new SecretKeyObject("secret", Buffer.from(new Uint8Array(secretBytes(key, encoding))));
function secretBytes(key, encoding) {
  const v = viewOf(key, "key", encoding);
  return new Uint8Array(v.buffer, v.byteOffset, v.byteLength);
}
const createPrivateKey = (key) => new PrivateKeyObject("private", readKey(key, true));
const createPublicKey = (key) => new PublicKeyObject("public", readKey(key, false));

function exportPair(handle, options) {
  const keys = { publicKey: new PublicKeyObject("public", natives.publicOf(handle)), privateKey: new PrivateKeyObject("private", handle) };
  if (options && options.publicKeyEncoding) keys.publicKey = keys.publicKey.export(options.publicKeyEncoding);
  if (options && options.privateKeyEncoding) keys.privateKey = keys.privateKey.export(options.privateKeyEncoding);
  return keys;
}

function generateKeyPairSync(type, options = {}) {
  if (type === "rsa-pss") type = "rsa";
  if (type === "rsa") checkInteger(options.modulusLength, "options.modulusLength", 0);
  if (type === "rsa" && options.publicExponent !== undefined && options.publicExponent !== 65537) throw unsupportedError("crypto", "an RSA key with another exponent than 65537");
  return exportPair(natives.generateKey(type, type === "rsa" ? options.modulusLength : options.namedCurve), options);
}

function generateKeyPair(type, options, done) {
  if (typeof options === "function") [options, done] = [{}, options];
  callback(done);
  let keys, error = null;
  try {
    keys = generateKeyPairSync(type, options);
  } catch (e) {
    error = e;
  }
  nextTick(() => (error ? done(error) : done(null, keys.publicKey, keys.privateKey)));
}
Object.defineProperty(generateKeyPair, Symbol.for("nodejs.util.promisify.args"), { value: ["publicKey", "privateKey"] });

function generateKeySync(type, { length }) {
  if (type === "aes" && ![128, 192, 256].includes(length)) throw invalidValue("options.length", length);
  return createSecretKey(randomBytes(Math.floor(length / 8)));
}

// Signatures.

const constants = {
  RSA_PKCS1_PADDING: 1, RSA_NO_PADDING: 3, RSA_PKCS1_OAEP_PADDING: 4, RSA_X931_PADDING: 5, RSA_PKCS1_PSS_PADDING: 6,
  RSA_PSS_SALTLEN_DIGEST: -1, RSA_PSS_SALTLEN_MAX_SIGN: -2, RSA_PSS_SALTLEN_AUTO: -2,
  POINT_CONVERSION_COMPRESSED: 2, POINT_CONVERSION_UNCOMPRESSED: 4, POINT_CONVERSION_HYBRID: 6, defaultCoreCipherList: "", defaultCipherList: "",
  TLS1_VERSION: 769, TLS1_1_VERSION: 770, TLS1_2_VERSION: 771, TLS1_3_VERSION: 772, ENGINE_METHOD_ALL: 65535, SSL_OP_ALL: 2147485776, SSL_OP_NO_SSLv2: 0, SSL_OP_NO_SSLv3: 33554432, SSL_OP_NO_TLSv1: 67108864, SSL_OP_NO_TLSv1_1: 268435456, SSL_OP_NO_TLSv1_2: 134217728, SSL_OP_NO_TLSv1_3: 536870912, SSL_OP_LEGACY_SERVER_CONNECT: 4, SSL_OP_CIPHER_SERVER_PREFERENCE: 4194304,
};

const optionsOf = (key) => (key && typeof key === "object" && !isKey(key) && !ArrayBuffer.isView(key) ? key : {});

function sign(algorithm, data, key, done) {
  if (done) return later(() => sign(algorithm, data, key), done);
  const o = optionsOf(key);
  return bytes(natives.sign(readKey(key, true), algorithm == null ? undefined : algorithm, viewOf(data, "data"), o.padding || 0, o.saltLength, o.dsaEncoding === "ieee-p1363"));
}

function verify(algorithm, data, key, signature, done) {
  if (done) return later(() => verify(algorithm, data, key, signature), done);
  const o = optionsOf(key);
  return natives.verify(readKey(key, false), algorithm == null ? undefined : algorithm, viewOf(data, "data"), o.padding || 0, o.saltLength, o.dsaEncoding === "ieee-p1363", viewOf(signature, "signature"));
}

function signer(name, finish) {
  const C = function (algorithm) {
    if (!new.target) return new C(algorithm);
    checkString(algorithm, "algorithm");
    this[state] = { algorithm, parts: [] };
    stream().Writable.call(this, {});
  };
  Object.defineProperty(C, "name", { value: name });
  Object.setPrototypeOf(C.prototype, stream().Writable.prototype);
  C.prototype._write = function (chunk, encoding, done) { this.update(chunk, encoding); done(); };
  C.prototype.update = function update(data, encoding) {
    this[state].parts.push(Buffer.from(viewOf(data, "data", encoding)));
    return this;
  };
  finish(C.prototype, (self) => Buffer.concat(self[state].parts));
  return C;
}
let Sign, Verify;
const signs = () => (Sign ||= signer("Sign", (proto, data) => {
  proto.sign = function (key, encoding) { return encoded(sign(this[state].algorithm, data(this), key), encoding); };
}));
const verifies = () => (Verify ||= signer("Verify", (proto, data) => {
  proto.verify = function (key, signature, encoding) { return verify(this[state].algorithm, data(this), key, viewOf(signature, "signature", encoding)); };
}));

function publicEncrypt(key, data) {
  const o = optionsOf(key);
  return bytes(natives.rsaEncrypt(readKey(key, false), viewOf(data, "buffer", o.encoding), o.padding || 4, o.oaepHash || "sha1", o.oaepLabel ? viewOf(o.oaepLabel, "oaepLabel") : Buffer.alloc(0)));
}
function privateDecrypt(key, data) {
  const o = optionsOf(key);
  return bytes(natives.rsaDecrypt(readKey(key, true), viewOf(data, "buffer", o.encoding), o.padding || 4, o.oaepHash || "sha1", o.oaepLabel ? viewOf(o.oaepLabel, "oaepLabel") : Buffer.alloc(0)));
}

// Ciphers.

function cipherClass(name, decrypt) {
  const C = function (cipher, key, iv, options) {
    if (!new.target) return new C(cipher, key, iv, options);
    checkString(cipher, "cipher");
    const info = natives.cipherInfo(cipher);
    if (!info) throw coded(Error, "ERR_CRYPTO_UNKNOWN_CIPHER", `Unknown cipher`);
    const authenticated = info[1] === "gcm" || info[1] === "chacha";
    this[state] = { cipher: natives.cipher(cipher, secretOf(key), iv === null ? undefined : viewOf(iv, "iv"), decrypt, authenticated && options && options.authTagLength ? options.authTagLength : 16), authenticated, done: false };
    this.streamOptions = options;
  };
  Object.defineProperty(C, "name", { value: name });
  const live = (self) => {
    const s = self[state];
    if (s.done) throw coded(Error, "ERR_CRYPTO_INVALID_STATE", "Unsupported state");
    return s;
  };
  Object.assign(C.prototype, {
    update(data, inputEncoding, outputEncoding) { return encoded(natives.cipherUpdate(live(this).cipher, viewOf(data, "data", inputEncoding)), outputEncoding); },
    final(outputEncoding) {
      const s = live(this);
      s.done = true;
      if (decrypt && s.authenticated && !s.tagged) throw new Error("Unsupported state or unable to authenticate data");
      return encoded(natives.cipherFinal(s.cipher), outputEncoding);
    },
    setAutoPadding(on = true) { natives.cipherPadding(live(this).cipher, !!on); return this; },
    setAAD(data, options) { natives.cipherAAD(live(this).cipher, viewOf(data, "buffer", options && options.encoding)); return this; },
  });
  if (decrypt) {
    C.prototype.setAuthTag = function (tag, encoding) {
      const s = live(this), view = viewOf(tag, "buffer", encoding);
      if (![4, 8, 12, 13, 14, 15, 16].includes(view.byteLength)) throw coded(TypeError, "ERR_CRYPTO_INVALID_AUTH_TAG", `Invalid authentication tag length: ${view.byteLength}`);
      s.tagged = true;
      natives.cipherSetTag(s.cipher, view);
      return this;
    };
  } else {
    C.prototype.getAuthTag = function () {
      if (!this[state].done || !this[state].authenticated) throw coded(Error, "ERR_CRYPTO_INVALID_STATE", "Invalid state for operation getAuthTag");
      return bytes(natives.cipherTag(this[state].cipher));
    };
  }
  streaming(C, (self, chunk, encoding) => self.update(chunk, encoding), (self) => self.final());
  return C;
}
const Cipheriv = cipherClass("Cipheriv", false), Decipheriv = cipherClass("Decipheriv", true);

function getCipherInfo(name, options) {
  const info = natives.cipherInfo(String(name));
  if (!info) return undefined;
  const [keyLength, mode] = info;
  if (options && options.keyLength !== undefined && options.keyLength !== keyLength) return undefined;
  const out = { mode: mode === "chacha" ? "stream" : mode, name: String(name).toLowerCase(), nid: 0, keyLength };
  if (mode !== "ecb") out.ivLength = mode === "gcm" || mode === "chacha" ? 12 : 16;
  if (mode === "cbc" || mode === "ecb") out.blockSize = 16;
  return out;
}

// Randomness.

function randomBytes(size, done) {
  checkNumberOf(size);
  const make = () => {
    const out = Buffer.alloc(size);
    natives.random(out);
    return out;
  };
  return done === undefined ? make() : later(make, done);
}
function checkNumberOf(size) {
  if (typeof size !== "number") throw invalidType("size", "number", size);
  if (!(size >= 0 && size <= 2 ** 31 - 1)) throw outOfRange("size", `>= 0 && <= ${2 ** 31 - 1}`, size);
}

function randomFillSync(into, offset = 0, size) {
  if (!ArrayBuffer.isView(into) && !isArrayBuffer(into)) throw invalidType("buf", ["ArrayBuffer", "ArrayBufferView"], into);
  const unit = into.BYTES_PER_ELEMENT || 1;
  const view = isArrayBuffer(into) ? new Uint8Array(into) : new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
  offset *= unit;
  const end = size === undefined ? view.length : offset + size * unit;
  if (!(offset >= 0 && offset <= view.length)) throw outOfRange("offset", `>= 0 && <= ${view.length}`, offset);
  if (!(end <= view.length)) throw outOfRange("size + offset", `<= ${view.length}`, end);
  natives.random(view.subarray(offset, end));
  return into;
}
function randomFill(into, offset, size, done) {
  if (typeof offset === "function") [offset, size, done] = [0, undefined, offset];
  else if (typeof size === "function") [size, done] = [undefined, size];
  later(() => randomFillSync(into, offset, size), done);
}

function randomInt(min, max, done) {
  if (max === undefined || typeof max === "function") [min, max, done] = [0, min, max];
  if (!Number.isSafeInteger(min)) throw invalidType("min", "a safe integer", min);
  if (!Number.isSafeInteger(max)) throw invalidType("max", "a safe integer", max);
  if (max <= min) throw outOfRange("max", `greater than the value of "min" (${min})`, max);
  const range = max - min;
  if (range > 2 ** 48 - 1) throw outOfRange("max - min", `<= ${2 ** 48 - 1}`, range);
  const limit = 2 ** 48 - (2 ** 48 % range);
  const make = () => {
    for (;;) {
      const n = randomBytes(6).readUIntBE(0, 6);
      if (n < limit) return min + (n % range);
    }
  };
  return done === undefined ? make() : later(make, done);
}

function timingSafeEqual(a, b) {
  const x = bytesLike(a, "buf1"), y = bytesLike(b, "buf2");
  if (x.byteLength !== y.byteLength) throw coded(RangeError, "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH", "Input buffers must have the same byte length");
  return natives.equal(x, y);
}
function bytesLike(v, name) {
  if (typeof v === "string") throw invalidType(name, ["ArrayBuffer", "Buffer", "TypedArray", "DataView"], v);
  return viewOf(v, name);
}

// Derivation of keys.

function pbkdf2Sync(password, salt, iterations, length, digest) {
  checkString(digest, "digest");
  checkInteger(iterations, "iterations", 1, 2 ** 31 - 1);
  checkInteger(length, "keylen", 0, 2 ** 31 - 1);
  return bytes(natives.pbkdf2(secretOf(password, "password"), viewOf(salt, "salt"), iterations, length, digest));
}
function pbkdf2(password, salt, iterations, length, digest, done) {
  if (typeof digest === "function") throw invalidType("digest", "string", undefined);
  checkString(digest, "digest");
  later(() => pbkdf2Sync(password, salt, iterations, length, digest), done);
}
function scryptSync(password, salt, length, options = {}) {
  checkInteger(length, "keylen", 0, 2 ** 31 - 1);
  const pick = (...names) => names.map((n) => options[n]).find((v) => v !== undefined);
  return bytes(natives.scrypt(secretOf(password, "password"), viewOf(salt, "salt"), length, pick("N", "cost") || 16384, pick("r", "blockSize") || 8, pick("p", "parallelization") || 1, (options.maxmem || 32 * 1024 * 1024) + 128 * 8));
}
function scrypt(password, salt, length, options, done) {
  if (typeof options === "function") [options, done] = [{}, options];
  later(() => scryptSync(password, salt, length, options), done);
}
function hkdfSync(digest, key, salt, info, length) {
  checkString(digest, "digest");
  checkInteger(length, "length", 0, 2 ** 31 - 1);
  return natives.hkdf(digest, secretOf(key, "ikm"), viewOf(salt, "salt"), viewOf(info, "info"), length);
}
function hkdf(digest, key, salt, info, length, done) { later(() => hkdfSync(digest, key, salt, info, length), done); }

// Exchange of keys.

const diffieHellman = ({ privateKey, publicKey }) => bytes(natives.sharedSecret(readKey(privateKey, true), readKey(publicKey, false)));

class ECDH {
  #curve;
  #key;
  constructor(curve) {
    checkString(curve, "curve");
    this.#curve = curve;
    natives.generateKey("ec", curve); // throws if the curve is not known
  }
  #mine() {
    if (!this.#key) throw coded(Error, "ERR_CRYPTO_ECDH_INVALID_KEY", "Failed to get ECDH key");
    return this.#key;
  }
  #point(encoding, format) {
    if (format !== undefined && format !== "uncompressed") throw unsupportedError("crypto", `the ${format} form of a point`);
    return encoded(natives.pointOf(this.#mine(), false), encoding);
  }
  generateKeys(encoding, format) {
    this.#key = natives.generateKey("ec", this.#curve);
    return this.#point(encoding, format);
  }
  getPublicKey(encoding, format) { return this.#point(encoding, format); }
  getPrivateKey(encoding) { return encoded(natives.pointOf(this.#mine(), true), encoding); }
  setPrivateKey(key, encoding) { this.#key = natives.keyOfPoint(this.#curve, viewOf(key, "privateKey", encoding), true); return this; }
  computeSecret(other, inputEncoding, outputEncoding) {
    return encoded(natives.sharedSecret(this.#mine(), natives.keyOfPoint(this.#curve, viewOf(other, "otherPublicKey", inputEncoding), false)), outputEncoding);
  }
}

function hash(algorithm, data, outputEncoding = "hex") {
  if (outputEncoding && typeof outputEncoding === "object") outputEncoding = outputEncoding.outputEncoding || "hex";
  return new Hash(algorithm).update(data).digest(outputEncoding);
}

function checkPrimeSync(candidate) {
  const n = typeof candidate === "bigint" ? candidate : BigInt("0x" + (Buffer.from(viewOf(candidate, "candidate")).toString("hex") || "0"));
  if (n < 2n) return false;
  for (const p of [2n, 3n, 5n, 7n, 11n, 13n, 17n, 19n, 23n, 29n, 31n, 37n]) {
    if (n === p) return true;
    if (n % p === 0n) return false;
  }
  let d = n - 1n, r = 0;
  while (d % 2n === 0n) { d /= 2n; r++; }
  const power = (b, e) => { let out = 1n; for (b %= n; e > 0n; e >>= 1n) { if (e & 1n) out = (out * b) % n; b = (b * b) % n; } return out; };
  for (let round = 0; round < 24; round++) {
    const a = (BigInt("0x" + randomBytes(16).toString("hex")) % (n - 3n)) + 2n;
    let x = power(a, d);
    if (x === 1n || x === n - 1n) continue;
    let composite = true;
    for (let i = 1; i < r && composite; i++) {
      x = (x * x) % n;
      if (x === n - 1n) composite = false;
    }
    if (composite) return false;
  }
  return true;
}

module.exports = {
  constants, Hash, Hmac, KeyObject, Cipheriv, Decipheriv, Cipher: Cipheriv, Decipher: Decipheriv, ECDH, hash,
  createHash: (algorithm, options) => new Hash(algorithm, options), createHmac: (algorithm, key) => new Hmac(algorithm, key),
  createCipheriv: (cipher, key, iv, options) => new Cipheriv(cipher, key, iv, options), createDecipheriv: (cipher, key, iv, options) => new Decipheriv(cipher, key, iv, options),
  createSecretKey, createPrivateKey, createPublicKey, generateKeyPair, generateKeyPairSync, generateKeySync,
  generateKey: (type, options, done) => later(() => generateKeySync(type, options), done),
  createSign: (algorithm) => new (signs())(algorithm), createVerify: (algorithm) => new (verifies())(algorithm), sign, verify,
  get Sign() { return signs(); },
  get Verify() { return verifies(); },
  publicEncrypt, privateDecrypt, diffieHellman, createECDH: (curve) => new ECDH(curve),
  randomBytes, pseudoRandomBytes: randomBytes, prng: randomBytes, rng: randomBytes, randomFill, randomFillSync, randomInt, randomUUID: () => crypto.randomUUID(), timingSafeEqual,
  pbkdf2, pbkdf2Sync, scrypt, scryptSync, hkdf, hkdfSync,
  getHashes: () => natives.hashes(), getCipherInfo,
  getCiphers: () => ["128", "192", "256"].flatMap((b) => ["cbc", "ctr", "ecb", "gcm"].map((m) => `aes-${b}-${m}`)).concat("chacha20-poly1305"),
  getCurves: () => ["prime256v1", "secp224r1", "secp384r1", "secp521r1"],
  getFips: () => 0, setFips(on) { if (on) throw unsupportedError("crypto", "setFips"); }, secureHeapUsed: () => ({ total: 0, used: 0, utilization: 0, min: 0 }),
  checkPrimeSync, checkPrime: (candidate, options, done) => later(() => checkPrimeSync(candidate), done || options),
  get webcrypto() { return crypto; },
  get subtle() { return crypto.subtle; },
  getRandomValues: (view) => crypto.getRandomValues(view),
};
