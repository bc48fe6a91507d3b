// Numbers of 16 bits: Math.f16round, the methods of DataView, and Float16Array.
(function (native) {
  "use strict";
  const { defineProperty } = Object;
  const { apply } = Reflect;
  const define = (to, methods) => {
    for (const name of Object.keys(methods)) {
      if (!(name in to)) defineProperty(to, name, { value: methods[name], writable: true, configurable: true });
    }
  };
  const { getUint16, setUint16 } = DataView.prototype;
  const { float16Encode: encode, float16Decode: decode, float16View } = native;
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

  // A Float16Array is a Uint16Array whose elements are read and written otherwise.
  const { construct } = Reflect;
  const { getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor } = Object;
  const Ints = Uint16Array;
  const TypedArray = getPrototypeOf(Ints);
  const { keys } = TypedArray.prototype;
  const tag = getOwnPropertyDescriptor(TypedArray.prototype, Symbol.toStringTag).get;
  const isObject = (v) => Object(v) === v;
  const isBuffer = (v) => {
    try { native.bufferDetached(v); return true; } catch { return false; }
  };
  const listOf = (source) => {
    const kind = apply(tag, source, []);
    if (kind !== undefined) {
      apply(keys, source, []); // TypeError for what is detached or out of bounds
      if (kind[0] === "B") throw new TypeError("Cannot mix BigInt and other types, use explicit conversions");
      return source;
    }
    const open = source[Symbol.iterator];
    if (open === undefined || open === null) return source;
    if (typeof open !== "function") throw new TypeError("the iterator is not a function");
    const list = [];
    let size = 0;
    for (const item of { [Symbol.iterator]: () => apply(open, source, []) }) {
      defineProperty(list, size++, { value: item, writable: true, enumerable: true, configurable: true });
    }
    return list;
  };
  const holder = { Float16Array: function (...args) {
    if (new.target === undefined) throw new TypeError("Constructor Float16Array requires 'new'");
    const [first] = args;
    const from = isObject(first) && !isBuffer(first) ? listOf(first) : undefined;
    const view = construct(Ints, from === undefined ? args : [toLength(from.length)], new.target);
    if (getPrototypeOf(view) === Ints.prototype) setPrototypeOf(view, Float16Array.prototype);
    float16View(view, Float16Array);
    if (from !== undefined) {
      const size = view.length;
      for (let i = 0; i < size; i++) view[i] = from[i];
    }
    return view;
  } };
  const { Float16Array } = holder;
  const toLength = (v) => { v = Math.trunc(+v) || 0; return v < 0 ? 0 : v > 2 ** 53 - 1 ? 2 ** 53 - 1 : v; };
  setPrototypeOf(Float16Array, TypedArray);
  setPrototypeOf(Float16Array.prototype, TypedArray.prototype);
  defineProperty(Float16Array, "length", { value: 3, configurable: true });
  defineProperty(Float16Array, "prototype", { writable: false });
  for (const to of [Float16Array, Float16Array.prototype]) defineProperty(to, "BYTES_PER_ELEMENT", { value: 2 });
  if (native.constructors !== undefined) native.constructors.Float16Array = Float16Array;
  defineProperty(globalThis, "Float16Array", { value: Float16Array, writable: true, configurable: true });
})
