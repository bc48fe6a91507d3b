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
  const transfer = (buffer, length) => {
    const { byteLength } = buffer;
    native.bufferDetached(buffer); // throws where it is none
    const size = length === undefined ? byteLength : toIndex(length);
    if (native.bufferDetached(buffer)) throw new TypeError("the ArrayBuffer is detached");
    return native.bufferTransfer(buffer, size);
  };
  define({
    get detached() { return native.bufferDetached(this); },
    transfer(length) { return transfer(this, length); },
    transferToFixedLength(length) { return transfer(this, length); },
  });
  for (const name of ["transfer", "transferToFixedLength"]) Object.defineProperty(prototype[name], "length", { value: 0, configurable: true });
})
