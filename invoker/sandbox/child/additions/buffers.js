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
  const { slice } = prototype;
  Object.defineProperty(prototype, "slice", { value: { slice(start, end) {
    if (native.bufferDetached(this)) throw new TypeError("the ArrayBuffer is detached");
    return Reflect.apply(slice, this, [start, end]);
  } }.slice, writable: true, configurable: true });
  for (const name of ["transfer", "transferToFixedLength"]) Object.defineProperty(prototype[name], "length", { value: 0, configurable: true });
})
