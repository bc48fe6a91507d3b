// Transferable buffers.
(function (native) {
  "use strict";
  const { prototype } = ArrayBuffer;
  const define = (methods) => {
    for (const key of Reflect.ownKeys(methods)) {
      const d = Object.getOwnPropertyDescriptor(methods, key);
      d.enumerable = false;
      if (!(key in prototype)) Object.defineProperty(prototype, key, d);
    }
  };
  const toIndex = (v) => {
    v = Math.trunc(+v) || 0;
    if (v < 0 || v > 2 ** 53 - 1) throw new RangeError("the length is out of range");
    return v;
  };
  const transfer = (buffer, length, fixed) => {
    native.bufferDetached(buffer); // throws where it is none
    const { byteLength } = buffer;
    const size = length === undefined ? byteLength : toIndex(length);
    if (native.bufferDetached(buffer)) throw new TypeError("the ArrayBuffer is detached");
    const most = fixed ? undefined : native.bufferMost(buffer);
    if (most !== undefined && size > most) throw new RangeError("the length is greater than the maximum");
    const moved = native.bufferTransfer(buffer, size);
    return most === undefined ? moved : native.bufferMake(moved, size, most);
  };
  define({
    get detached() { return native.bufferDetached(this); },
    transfer(length) { return transfer(this, length, false); },
    transferToFixedLength(length) { return transfer(this, length, true); },
  });
  // The views of a detached buffer have no length.
  const TypedArray = Object.getPrototypeOf(Uint8Array).prototype;
  for (const name of ["length", "byteLength", "byteOffset"]) {
    const { get } = Object.getOwnPropertyDescriptor(TypedArray, name);
    const ours = Object.getOwnPropertyDescriptor({ get [name]() {
      const value = Reflect.apply(get, this, []);
      return native.viewDetached(this) ? 0 : value;
    } }, name);
    Object.defineProperty(TypedArray, name, { get: ours.get, enumerable: false, configurable: true });
  }
  const { slice } = prototype;
  const toInteger = (v) => Math.trunc(+v) || 0;
  Object.defineProperty(prototype, "slice", { value: { slice(start, end) {
    const { byteLength } = this;
    start = toInteger(start);
    end = end === undefined ? byteLength : toInteger(end);
    if (native.bufferDetached(this)) throw new TypeError("the ArrayBuffer is detached");
    return Reflect.apply(slice, this, [start, end]);
  } }.slice, writable: true, configurable: true });
  for (const name of ["transfer", "transferToFixedLength"]) Object.defineProperty(prototype[name], "length", { value: 0, configurable: true });
})
