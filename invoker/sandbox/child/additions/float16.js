// Numbers of 16 bits: Math.f16round and the methods of DataView.
(function () {
  "use strict";
  const { defineProperty } = Object;
  const { apply } = Reflect;
  const define = (to, methods) => {
    for (const name of Object.keys(methods)) {
      if (!(name in to)) defineProperty(to, name, { value: methods[name], writable: true, configurable: true });
    }
  };
  const { getUint16, setUint16 } = DataView.prototype;
  const bytes = new DataView(new ArrayBuffer(8));
  // encode rounds a number to the nearest of 16 bits, ties to even, and returns its bits.
  const encode = (v) => {
    if (v !== v) return 0x7e00;
    const sign = v < 0 || Object.is(v, -0) ? 0x8000 : 0;
    const a = Math.abs(v);
    if (a >= 65520) return sign | 0x7c00;
    const even = (x) => {
      const low = Math.floor(x), rest = x - low;
      return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
    };
    if (a < 2 ** -14) return sign | even(a * 2 ** 24);
    bytes.setFloat64(0, a);
    const exponent = ((bytes.getUint16(0) >> 4) & 0x7ff) - 1023;
    return sign + ((exponent + 15) << 10) + even(a * 2 ** (10 - exponent)) - 1024;
  };
  const decode = (bits) => {
    const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  };
  define(Math, { f16round(x) { return decode(encode(+x)); } });
  define(DataView.prototype, {
    getFloat16(offset, ...little) { return decode(apply(getUint16, this, [offset, !!little[0]])); },
  });
  const { byteLength } = Object.getOwnPropertyDescriptors(DataView.prototype);
  const toIndex = (v) => {
    v = Math.trunc(+v) || 0;
    if (v < 0 || v > 2 ** 53 - 1) throw new RangeError("the offset is out of range");
    return v;
  };
  defineProperty(DataView.prototype, "setFloat16", { value: { setFloat16(offset, value, ...little) {
    if (!ArrayBuffer.isView(this) || "BYTES_PER_ELEMENT" in this) throw new TypeError("the receiver is not a DataView");
    const at = toIndex(offset);
    const bits = encode(+value);
    apply(byteLength.get, this, []); // TypeError for a detached buffer
    apply(setUint16, this, [at, bits, !!little[0]]);
  } }.setFloat16, writable: true, configurable: true });
})
