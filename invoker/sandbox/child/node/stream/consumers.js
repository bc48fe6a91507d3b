const { Buffer } = require("internal/bytes");
const { Blob } = require("internal/web");
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

async function buffer(source) {
  const it = source[asyncIterator]();
  const parts = [];
  for (let r; !(r = await it.next()).done;) parts.push(typeof r.value === "string" ? Buffer.from(r.value) : Buffer.from(r.value.buffer ? new Uint8Array(r.value.buffer, r.value.byteOffset, r.value.byteLength) : r.value));
  return Buffer.concat(parts);
}

module.exports = {
  buffer,
  text: async (s) => new TextDecoder().decode(await buffer(s)),
  json: async (s) => JSON.parse(new TextDecoder().decode(await buffer(s))),
  arrayBuffer: async (s) => new Uint8Array(await buffer(s)).buffer,
  blob: async (s) => new Blob([await buffer(s)]),
};
