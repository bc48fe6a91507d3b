const { Buffer, natives: codec } = require("internal/bytes");
const { coded } = require("internal/errors");

// StringDecoder decodes bytes that come in parts: what is not a whole character waits.
function StringDecoder(encoding) {
  this.encoding = Buffer.isEncoding(encoding) || encoding == null ? normal(encoding) : bad(encoding);
  this.left = null;
}

function bad(encoding) { throw coded(TypeError, "ERR_UNKNOWN_ENCODING", `Unknown encoding: ${encoding}`); }
function normal(encoding) { return require("internal/bytes").encodingOf(encoding); }

function whole(bytes, encoding) {
  switch (encoding) {
    case "utf8": return codec.whole(bytes, bytes.length);
    case "utf16le": {
      const n = bytes.length & ~1;
      return n >= 2 && (bytes[n - 1] & 0xfc) === 0xd8 ? n - 2 : n;
    }
    case "base64": case "base64url": return bytes.length - (bytes.length % 3);
  }
  return bytes.length;
}

StringDecoder.prototype.write = function write(chunk) {
  if (typeof chunk === "string") return chunk;
  if (!ArrayBuffer.isView(chunk)) throw require("internal/errors").invalidType("buf", ["Buffer", "TypedArray", "DataView"], chunk);
  let bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  if (this.left) bytes = Buffer.concat([this.left, bytes]);
  const n = whole(bytes, this.encoding);
  this.left = n < bytes.length ? Buffer.from(bytes.subarray(n)) : null;
  return bytes.toString(this.encoding, 0, n);
};

StringDecoder.prototype.end = function end(chunk) {
  const out = chunk === undefined ? "" : this.write(chunk);
  const { left } = this;
  this.left = null;
  return left ? out + left.toString(this.encoding) : out;
};

StringDecoder.prototype.text = function text(chunk, offset) {
  this.left = null;
  return this.write(chunk.subarray(offset));
};

Object.defineProperty(StringDecoder.prototype, "lastNeed", { configurable: true, get() { return this.left ? 1 : 0; } });

module.exports = { StringDecoder };
