// Deep equality, as util.isDeepStrictEqual and assert define it.
const { types } = require("internal/types");

function deepEqual(a, b, strict, partial) { return equal(a, b, strict, new Map(), partial); }

function sameKeys(a, b) {
  const ka = Object.keys(a), kb = Object.keys(b);
  return ka.length === kb.length && ka.every((k) => Object.prototype.hasOwnProperty.call(b, k)) ? ka : null;
}

function equal(a, b, strict, seen, partial) {
  if (a === b) return a !== 0 || !strict || Object.is(a, b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
    if (typeof a === "number" && typeof b === "number") return a !== a && b !== b;
    if (strict) return false;
    if (a === null || b === null || typeof a === "object" || typeof b === "object") return a == null && b == null;
    return a == b || (a !== a && b !== b); // eslint-disable-line eqeqeq
  }
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const ta = Object.prototype.toString.call(a);
  if (ta !== Object.prototype.toString.call(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (types.isDate(a)) {
    if (!types.isDate(b) || !Object.is(a.getTime(), b.getTime())) return false;
  } else if (types.isRegExp(a)) {
    if (!types.isRegExp(b) || String(a) !== String(b) || a.lastIndex !== b.lastIndex) return false;
  } else if (types.isNativeError(a) || a instanceof Error) {
    if (a.message !== b.message || a.name !== b.name || !equal(a.cause, b.cause, strict, seen, partial) || !equal(a.errors, b.errors, strict, seen, partial)) return false;
  } else if (types.isBoxedPrimitive(a)) {
    if (!types.isBoxedPrimitive(b) || !Object.is(a.valueOf(), b.valueOf())) return false;
  } else if (types.isAnyArrayBuffer(a)) {
    if (!types.isAnyArrayBuffer(b) || !sameBytes(new Uint8Array(a), new Uint8Array(b))) return false;
  } else if (ArrayBuffer.isView(a)) {
    if (!ArrayBuffer.isView(b)) return false;
    if (types.isFloat32Array(a) || types.isFloat64Array(a)) {
      if (a.length !== b.length || !a.every((v, i) => (strict ? Object.is(v, b[i]) : v === b[i] || v !== v))) return false;
    } else if (!sameBytes(new Uint8Array(a.buffer, a.byteOffset, a.byteLength), new Uint8Array(b.buffer, b.byteOffset, b.byteLength))) {
      return false;
    }
    return true;
  }
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  try {
    return members(a, b, strict, seen, partial);
  } finally {
    seen.delete(a);
  }
}

function sameBytes(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function members(a, b, strict, seen, partial) {
  const compare = (x, y) => equal(x, y, strict, seen, partial);
  if (types.isSet(a)) {
    if (!types.isSet(b) || (partial ? a.size < b.size : a.size !== b.size)) return false;
    const rest = [...a];
    for (const v of b) {
      let at = a.has(v) ? rest.indexOf(v) : -1;
      if (at < 0) at = rest.findIndex((x) => compare(x, v));
      if (at < 0) return false;
      rest.splice(at, 1);
    }
  } else if (types.isMap(a)) {
    if (!types.isMap(b) || (partial ? a.size < b.size : a.size !== b.size)) return false;
    const rest = [...a];
    for (const [k, v] of b) {
      const at = a.has(k) ? rest.findIndex((e) => Object.is(e[0], k) && compare(e[1], v)) : rest.findIndex((e) => compare(e[0], k) && compare(e[1], v));
      if (at < 0) return false;
      rest.splice(at, 1);
    }
  }
  if (partial) {
    return Object.keys(b).every((k) => k in a && compare(a[k], b[k]));
  }
  if (Array.isArray(a) && a.length !== b.length) return false;
  const keys = sameKeys(a, b);
  if (!keys) return false;
  if (strict) {
    const symbols = (o) => Object.getOwnPropertySymbols(o).filter((s) => Object.prototype.propertyIsEnumerable.call(o, s));
    const sa = symbols(a), sb = symbols(b);
    if (sa.length !== sb.length || !sa.every((s) => sb.includes(s))) return false;
    keys.push(...sa);
  }
  return keys.every((k) => compare(a[k], b[k]));
}

module.exports = { deepEqual };
