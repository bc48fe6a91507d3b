// Buffer: a Uint8Array whose texts are made and read in Go.
const { coded, invalidType, invalidValue, outOfRange, checkInteger, checkNumber } = require("internal/errors");
const kMaxLength = 2 ** 31 - 1; // more does not fit in a sandbox
const inspectCustom = Symbol.for("nodejs.util.inspect.custom");

class FastBuffer extends Uint8Array {}

// encodingOf returns the canonical name of an encoding, undefined if it is not known.
function encodingOf(name) {
  switch (name) {
    case undefined: case null: case "utf8": case "utf-8": return "utf8";
    case "hex": case "base64": case "base64url": case "latin1": case "ascii": case "utf16le": return name;
    case "binary": return "latin1";
    case "ucs2": case "ucs-2": case "utf-16le": return "utf16le";
  }
  const lower = String(name).toLowerCase();
  if (lower === "") return "utf8";
  return lower !== name ? encodingOf(lower) : undefined;
}

function known(name) {
  const encoding = encodingOf(name);
  if (encoding === undefined) throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${name}`);
  return encoding;
}

function checkSize(size) {
  if (typeof size !== "number") throw invalidType("size", "number", size);
  if (!(size >= 0 && size <= kMaxLength)) throw outOfRange("size", `>= 0 && <= ${kMaxLength}`, size);
}

function Buffer(value, encodingOrOffset, length) {
  if (typeof value === "number") {
    if (typeof encodingOrOffset === "string") throw invalidType("string", "string", value);
    return Buffer.alloc(value);
  }
  return Buffer.from(value, encodingOrOffset, length);
}
Object.setPrototypeOf(Buffer, Uint8Array);
Buffer.prototype = FastBuffer.prototype;
Object.defineProperty(Buffer, Symbol.species, { configurable: true, get: () => FastBuffer });
Object.defineProperty(Buffer.prototype, "constructor", { value: Buffer, writable: true, configurable: true });
Buffer.poolSize = 8192;

const isArrayBuffer = (v) => v instanceof ArrayBuffer || Object.prototype.toString.call(v) === "[object ArrayBuffer]";

Buffer.from = function from(value, encodingOrOffset, length) {
  if (typeof value === "string") return new FastBuffer(natives.encode(value, known(encodingOrOffset)));
  if (typeof value === "object" && value !== null) {
    if (isArrayBuffer(value)) {
      let offset = encodingOrOffset === undefined ? 0 : +encodingOrOffset || 0;
      const most = value.byteLength - offset;
      if (most < 0) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", '"offset" is outside of buffer bounds');
      if (length === undefined) length = most;
      else if (!(length > 0)) length = 0;
      else if (length > most) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", '"length" is outside of buffer bounds');
      return new FastBuffer(value, offset, length);
    }
    const primitive = value.valueOf && value.valueOf();
    if (primitive != null && primitive !== value && (typeof primitive === "string" || typeof primitive === "object")) return Buffer.from(primitive, encodingOrOffset, length);
    if (value.length !== undefined || isArrayBuffer(value.buffer)) {
      if (typeof value.length !== "number") return new FastBuffer(0);
      return copied(value);
    }
    if (value.type === "Buffer" && Array.isArray(value.data)) return copied(value.data);
    if (typeof value[Symbol.toPrimitive] === "function") {
      const text = value[Symbol.toPrimitive]("string");
      if (typeof text === "string") return Buffer.from(text, encodingOrOffset);
    }
  }
  throw invalidType("first argument", ["string", "Buffer", "ArrayBuffer", "Array", "Array-like Object"], value);
};

function copied(list) {
  const size = list.length > 0 ? Math.floor(list.length) : 0;
  checkSize(size);
  const out = new FastBuffer(size);
  if (list instanceof Uint8Array) natives.copy(out, list, 0, 0, size);
  else if (Array.isArray(list) || ArrayBuffer.isView(list)) out.set(list);
  else for (let i = 0; i < size; i++) out[i] = list[i];
  return out;
}

Buffer.copyBytesFrom = function copyBytesFrom(view, offset = 0, length) {
  if (!ArrayBuffer.isView(view)) throw invalidType("view", "TypedArray", view);
  const part = view.subarray(offset, length === undefined ? undefined : offset + length);
  return Buffer.from(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
};

Buffer.of = (...items) => copied(items);

Buffer.alloc = function alloc(size, fill, encoding) {
  checkSize(size);
  const out = new FastBuffer(size);
  return fill !== undefined && fill !== 0 && size > 0 ? out.fill(fill, encoding) : out;
};

Buffer.allocUnsafe = Buffer.allocUnsafeSlow = function allocUnsafe(size) {
  checkSize(size);
  return new FastBuffer(size);
};

Buffer.isBuffer = (b) => b instanceof Buffer;
Buffer.isEncoding = (name) => typeof name === "string" && name.length !== 0 && encodingOf(name) !== undefined;

Buffer.byteLength = function byteLength(text, encoding) {
  if (typeof text === "string") return natives.byteLength(text, encodingOf(encoding) || "utf8");
  if (ArrayBuffer.isView(text) || isArrayBuffer(text)) return text.byteLength;
  throw invalidType("string", ["string", "Buffer", "ArrayBuffer"], text);
};

Buffer.compare = function compare(a, b) {
  if (!(a instanceof Uint8Array)) throw invalidType("buf1", ["Buffer", "Uint8Array"], a);
  if (!(b instanceof Uint8Array)) throw invalidType("buf2", ["Buffer", "Uint8Array"], b);
  return natives.compare(a, b);
};

Buffer.concat = function concat(list, length) {
  if (!Array.isArray(list)) throw invalidType("list", "Array", list);
  let total = 0;
  for (let i = 0; i < list.length; i++) {
    if (!(list[i] instanceof Uint8Array)) throw invalidType(`list[${i}]`, ["Buffer", "Uint8Array"], list[i]);
    total += list[i].length;
  }
  if (length === undefined) length = total;
  else checkInteger(length, "length", 0);
  const out = Buffer.allocUnsafe(length);
  natives.concat(out, list);
  return out;
};

const proto = Buffer.prototype;
function define(methods) {
  for (const key of Reflect.ownKeys(methods)) Object.defineProperty(proto, key, { value: methods[key], writable: true, configurable: true, enumerable: true });
}

const clamp = (v, fallback, max) => {
  if (v === undefined) return fallback;
  v = Math.trunc(+v) || 0;
  return v < 0 ? 0 : v > max ? max : v;
};

function sliced(encoding) {
  return function (start, end) { return this.toString(encoding, start, end); };
}
function writer(encoding) {
  return function (text, offset = 0, length) { return write(this, text, offset, length === undefined ? this.length - offset : length, encoding); };
}

// write puts as many whole characters as fit.
function write(into, text, offset, length, encoding) {
  let bytes = new Uint8Array(natives.encode(text, encoding));
  let n = Math.min(length, into.length - offset);
  if (n < bytes.length) {
    if (encoding === "utf8") n = natives.whole(bytes, n);
    else if (encoding === "utf16le") n &= ~1;
  } else {
    n = bytes.length;
  }
  if (n > 0) natives.copy(into, bytes, offset, 0, n);
  return n;
}

define({
  toString(encoding, start, end) {
    const size = this.length;
    if (arguments.length === 0) return natives.decode(this, "utf8", 0, size);
    start = clamp(start, 0, size);
    end = clamp(end, size, size);
    if (end <= start) return "";
    return natives.decode(this, known(encoding), start, end);
  },
  toLocaleString(encoding, start, end) { return this.toString(encoding, start, end); },
  toJSON() { return { type: "Buffer", data: Array.from(this) }; },
  equals(other) {
    if (!(other instanceof Uint8Array)) throw invalidType("otherBuffer", ["Buffer", "Uint8Array"], other);
    return this === other || (this.length === other.length && natives.compare(this, other) === 0);
  },
  compare(target, targetStart = 0, targetEnd, start = 0, end) {
    if (!(target instanceof Uint8Array)) throw invalidType("target", ["Buffer", "Uint8Array"], target);
    if (targetEnd === undefined) targetEnd = target.length;
    if (end === undefined) end = this.length;
    checkInteger(targetStart, "targetStart", 0);
    checkInteger(targetEnd, "targetEnd", 0, target.length);
    checkInteger(start, "sourceStart", 0);
    checkInteger(end, "sourceEnd", 0, this.length);
    return natives.compare(this.subarray(start, Math.max(start, end)), target.subarray(targetStart, Math.max(targetStart, targetEnd)));
  },
  slice(start, end) { return this.subarray(start, end); },
  subarray(start, end) {
    const size = this.length;
    const at = (v, fallback) => {
      if (v === undefined) return fallback;
      v = Math.trunc(+v) || 0;
      return v < 0 ? Math.max(0, size + v) : Math.min(v, size);
    };
    start = at(start, 0);
    end = at(end, size);
    return new FastBuffer(this.buffer, this.byteOffset + start, end > start ? end - start : 0);
  },
  copy(target, targetStart = 0, start = 0, end = this.length) {
    if (!(target instanceof Uint8Array)) throw invalidType("target", ["Buffer", "Uint8Array"], target);
    targetStart = Math.trunc(+targetStart) || 0;
    start = Math.trunc(+start) || 0;
    end = Math.trunc(+end) || 0;
    if (targetStart < 0) throw outOfRange("targetStart", ">= 0", targetStart);
    if (start < 0 || start > this.length) throw outOfRange("sourceStart", `>= 0 && <= ${this.length}`, start);
    if (end < 0) throw outOfRange("sourceEnd", ">= 0", end);
    end = Math.min(end, this.length);
    if (targetStart >= target.length || start >= end) return 0;
    return natives.copy(target, this, targetStart, start, end);
  },
  write(text, offset, length, encoding) {
    if (typeof text !== "string") throw invalidType("argument", "string", text);
    if (typeof offset === "string") [offset, length, encoding] = [0, undefined, offset];
    else if (typeof length === "string") [length, encoding] = [undefined, length];
    if (offset === undefined) offset = 0;
    checkInteger(offset, "offset", 0, this.length);
    const most = this.length - offset;
    if (length === undefined) length = most;
    else checkInteger(length, "length", 0);
    return write(this, text, offset, Math.min(length, most), known(encoding));
  },
  fill(value, start, end, encoding) {
    if (typeof value === "string") {
      if (typeof start === "string") [start, end, encoding] = [undefined, undefined, start];
      else if (typeof end === "string") [end, encoding] = [undefined, end];
    }
    start = start === undefined ? 0 : start;
    end = end === undefined ? this.length : end;
    checkInteger(start, "offset", 0, this.length);
    checkInteger(end, "end", 0, this.length);
    if (start >= end) return this;
    let what;
    if (typeof value === "string") {
      what = value === "" ? Buffer.from([0]) : Buffer.from(value, encoding);
    } else if (ArrayBuffer.isView(value)) {
      what = value;
    } else {
      what = Buffer.from([value & 255]);
    }
    if (what.byteLength === 0) throw invalidValue("value", value);
    natives.fill(this, what, start, end);
    return this;
  },
  indexOf(value, offset, encoding) { return search(this, value, offset, encoding, false); },
  lastIndexOf(value, offset, encoding) { return search(this, value, offset, encoding, true); },
  includes(value, offset, encoding) { return search(this, value, offset, encoding, false) !== -1; },
  swap16() { return swapped(this, 2); },
  swap32() { return swapped(this, 4); },
  swap64() { return swapped(this, 8); },
  [inspectCustom](depth, options, inspect) {
    let text = natives.decode(this, "hex", 0, Math.min(50, this.length)).replace(/(..)/g, " $1");
    if (this.length > 50) text += ` ... ${this.length - 50} more byte${this.length > 51 ? "s" : ""}`;
    return `<Buffer${text}>`;
  },
});

for (const [name, encoding] of [["utf8", "utf8"], ["latin1", "latin1"], ["ascii", "ascii"], ["hex", "hex"], ["base64", "base64"], ["base64url", "base64url"], ["ucs2", "utf16le"]]) {
  define({ [`${name}Slice`]: sliced(encoding), [`${name}Write`]: writer(encoding) });
}
Object.defineProperty(proto, "parent", { configurable: true, get() { return this.buffer; } });
Object.defineProperty(proto, "offset", { configurable: true, get() { return this.byteOffset; } });

function swapped(b, size) {
  if (b.length % size) throw coded(RangeError, "ERR_INVALID_BUFFER_SIZE", `Buffer size must be a multiple of ${size * 8}-bits`);
  natives.swap(b, size);
  return b;
}

function search(b, value, offset, encoding, backwards) {
  if (typeof offset === "string") [offset, encoding] = [undefined, offset];
  offset = +offset;
  if (offset !== offset) offset = backwards ? b.length : 0;
  offset = Math.trunc(offset);
  if (offset < 0) offset += b.length;
  if (offset < 0) {
    if (backwards) return -1;
    offset = 0;
  }
  let step = 1, what = value;
  if (typeof value === "string") {
    if (known(encoding) === "utf16le") step = 2;
    what = Buffer.from(value, encoding);
  } else if (typeof value === "number") {
    what = value & 255;
  } else if (!(value instanceof Uint8Array)) {
    throw invalidType("value", ["number", "string", "Buffer", "Uint8Array"], value);
  }
  if (offset > b.length) {
    if (!backwards) return -1;
    offset = b.length;
  }
  return natives.indexOf(b, what, offset, backwards, step);
}

// Numbers.
function place(b, offset, size) {
  if (typeof offset !== "number") throw invalidType("offset", "number", offset);
  const most = b.length - size;
  if (offset >= 0 && offset <= most && Number.isInteger(offset)) return;
  if (!Number.isInteger(offset)) throw outOfRange("offset", "an integer", offset);
  if (most < 0) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");
  throw outOfRange("offset", `>= 0 and <= ${most}`, offset);
}

function readUnsigned(b, offset, size, little) {
  place(b, offset, size);
  let n = 0;
  if (little) for (let i = size - 1; i >= 0; i--) n = n * 256 + b[offset + i];
  else for (let i = 0; i < size; i++) n = n * 256 + b[offset + i];
  return n;
}

function readSigned(b, offset, size, little) {
  const n = readUnsigned(b, offset, size, little), limit = 2 ** (8 * size - 1);
  return n >= limit ? n - 2 * limit : n;
}

function writeNumber(b, value, offset, size, little, min, max) {
  value = +value;
  if (value > max || value < min) {
    const range = size > 4 ? `>= ${min < 0 ? `-(2 ** ${size * 8 - 1})` : 0} and < 2 ** ${min < 0 ? size * 8 - 1 : size * 8}` : `>= ${min} and <= ${max}`;
    throw outOfRange("value", range, value);
  }
  place(b, offset, size);
  let n = Math.trunc(value) || 0;
  if (n < 0) n += 2 ** (8 * size);
  for (let i = 0; i < size; i++) {
    b[little ? offset + i : offset + size - 1 - i] = n % 256;
    n = Math.floor(n / 256);
  }
  return offset + size;
}

function checkWidth(size) {
  if (size === undefined) throw invalidType("byteLength", "number", size);
  checkInteger(size, "byteLength", 1, 6);
}

for (const little of [true, false]) {
  const end = little ? "LE" : "BE";
  for (const bits of [8, 16, 32]) {
    if (bits === 8 && little) continue;
    const suffix = bits === 8 ? "8" : bits + end, size = bits / 8, limit = 2 ** bits;
    const readU = function (offset = 0) { return readUnsigned(this, offset, size, little); };
    const writeU = function (value, offset = 0) { return writeNumber(this, value, offset, size, little, 0, limit - 1); };
    define({
      [`readUInt${suffix}`]: readU, [`readUint${suffix}`]: readU, [`writeUInt${suffix}`]: writeU, [`writeUint${suffix}`]: writeU,
      [`readInt${suffix}`](offset = 0) { return readSigned(this, offset, size, little); },
      [`writeInt${suffix}`](value, offset = 0) { return writeNumber(this, value, offset, size, little, -limit / 2, limit / 2 - 1); },
    });
  }
  const readU = function (offset, size) { checkWidth(size); return readUnsigned(this, offset, size, little); };
  const writeU = function (value, offset, size) { checkWidth(size); return writeNumber(this, value, offset, size, little, 0, 2 ** (8 * size) - 1); };
  const readBigU = function (offset = 0) { place(this, offset, 8); return natives.readBig(this, offset, little, false); };
  const writeBigU = function (value, offset = 0) { return writeBig(this, value, offset, little, 0n, 2n ** 64n - 1n); };
  define({
    [`readUInt${end}`]: readU, [`readUint${end}`]: readU, [`writeUInt${end}`]: writeU, [`writeUint${end}`]: writeU,
    [`readInt${end}`](offset, size) { checkWidth(size); return readSigned(this, offset, size, little); },
    [`writeInt${end}`](value, offset, size) { checkWidth(size); return writeNumber(this, value, offset, size, little, -(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1); },
    [`readFloat${end}`](offset = 0) { place(this, offset, 4); return natives.readFloat(this, offset, 4, little); },
    [`readDouble${end}`](offset = 0) { place(this, offset, 8); return natives.readFloat(this, offset, 8, little); },
    [`writeFloat${end}`](value, offset = 0) { place(this, offset, 4); natives.writeFloat(this, offset, 4, little, +value); return offset + 4; },
    [`writeDouble${end}`](value, offset = 0) { place(this, offset, 8); natives.writeFloat(this, offset, 8, little, +value); return offset + 8; },
    [`readBigUInt64${end}`]: readBigU, [`readBigUint64${end}`]: readBigU,
    [`readBigInt64${end}`](offset = 0) { place(this, offset, 8); return natives.readBig(this, offset, little, true); },
    [`writeBigUInt64${end}`]: writeBigU, [`writeBigUint64${end}`]: writeBigU,
    [`writeBigInt64${end}`](value, offset = 0) { return writeBig(this, value, offset, little, -(2n ** 63n), 2n ** 63n - 1n); },
  });
}

function writeBig(b, value, offset, little, min, max) {
  if (typeof value !== "bigint") throw invalidType("value", "bigint", value);
  if (value < min || value > max) throw outOfRange("value", `>= ${min}n and <= ${max}n`, value);
  place(b, offset, 8);
  natives.writeBig(b, offset, little, value);
  return offset + 8;
}

// viewOf returns text or bytes as a view, for natives.
function viewOf(value, name, encoding) {
  if (typeof value === "string") return Buffer.from(value, encoding === "buffer" ? "utf8" : encoding);
  if (ArrayBuffer.isView(value)) return value;
  if (isArrayBuffer(value)) return new Uint8Array(value);
  throw invalidType(name, ["string", "Buffer", "TypedArray", "DataView"], value);
}

module.exports = { Buffer, FastBuffer, natives, encodingOf, viewOf, isArrayBuffer, kMaxLength };
