// Views of buffers, read without members that a script can replace.
const typed = Object.getPrototypeOf(Uint8Array.prototype), { apply } = Reflect;
const getter = (of, name) => Object.getOwnPropertyDescriptor(of, name).get;
const tag = getter(typed, Symbol.toStringTag), { isView } = ArrayBuffer;
const reading = (of) => {
  const buffer = getter(of, "buffer"), byteOffset = getter(of, "byteOffset"), byteLength = getter(of, "byteLength");
  return (v) => ({ buffer: apply(buffer, v, []), byteOffset: apply(byteOffset, v, []), byteLength: apply(byteLength, v, []) });
};
const typedMembers = reading(typed), dataMembers = reading(DataView.prototype);
const types = {};
for (const name of ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"]) {
  if (globalThis[name]) types[name] = globalThis[name];
}
const { set } = typed, bufferLength = getter(ArrayBuffer.prototype, "byteLength");

// viewOf returns the buffer, the offset and the length of a view in bytes, the size of its
// elements and its class. It throws a TypeError for other values.
function viewOf(v) {
  if (!isView(v)) throw new TypeError("The value is not a view of a buffer");
  const name = apply(tag, v, []), out = name === undefined ? dataMembers(v) : typedMembers(v);
  out.Type = name === undefined ? DataView : types[name];
  out.size = name === undefined ? 1 : out.Type.BYTES_PER_ELEMENT;
  return out;
}

const bytesIn = (buffer) => apply(bufferLength, buffer, []);
const { detached } = natives;

// transfer detaches a buffer and returns one with its bytes.
function transfer(buffer) {
  if (detached(buffer)) throw new TypeError("The buffer is detached");
  return natives.transfer(buffer, bytesIn(buffer));
}

// copy copies bytes of a buffer into a Uint8Array.
function copy(to, at, buffer, offset, length) { apply(set, to, [new Uint8Array(buffer, offset, length), at]); }

// bytesOf returns the bytes of a buffer or of a view, in place: none for one that is
// detached. It is undefined for other values.
function bytesOf(v) {
  if (isView(v)) {
    const { buffer, byteOffset, byteLength } = viewOf(v);
    return detached(buffer) ? new Uint8Array(0) : new Uint8Array(buffer, byteOffset, byteLength);
  }
  if (!natives.isBuffer(v)) return undefined;
  return detached(v) ? new Uint8Array(0) : new Uint8Array(v);
}

// enforceRange converts to an unsigned long long of WebIDL with [EnforceRange].
function enforceRange(v, what) {
  const n = Math.trunc(Number(v));
  if (!(n >= 0 && n <= Number.MAX_SAFE_INTEGER)) throw new TypeError(`${what} is out of range`);
  return n + 0;
}

module.exports = { usv: natives.usv, clone: natives.clone, viewOf, bytesIn, detached, transfer, copy, bytesOf, enforceRange };
