// Resizable buffers. The constructors of buffers and views are proxies that record the
// views of a resizable buffer.
(function (native) {
  "use strict";
  const { defineProperty } = Object;
  const { construct } = Reflect;
  const { bufferMake, bufferMost, bufferResize, bufferView, bufferDetached } = native;
  const { prototype } = ArrayBuffer;
  const isObject = (v) => Object(v) === v;
  const toIndex = (v) => {
    v = Math.trunc(+v) || 0;
    if (v < 0 || v > 2 ** 53 - 1) throw new RangeError("the length is out of range");
    return v;
  };
  const define = (methods) => {
    for (const key of Reflect.ownKeys(methods)) {
      const d = Object.getOwnPropertyDescriptor(methods, key);
      d.enumerable = false;
      defineProperty(prototype, key, d);
    }
  };
  const byteLength = Object.getOwnPropertyDescriptor(prototype, "byteLength").get;
  define({
    get resizable() { return bufferMost(this) !== undefined; },
    get maxByteLength() { return bufferMost(this) ?? Reflect.apply(byteLength, this, []); },
    resize(length) {
      if (bufferMost(this) === undefined) throw new TypeError("the ArrayBuffer is not resizable");
      bufferResize(this, toIndex(length));
    },
  });

  // replace installs a constructor in the place of another one. It is no proxy: goja's
  // instanceof does not know these.
  const replace = (C, handler) => {
    const holder = { [C.name]: function (...args) {
      if (new.target === undefined) throw new TypeError(`Constructor ${C.name} requires 'new'`);
      return handler(C, args, new.target);
    } };
    const ours = holder[C.name];
    Object.setPrototypeOf(ours, Object.getPrototypeOf(C));
    for (const key of Reflect.ownKeys(C)) {
      const d = Object.getOwnPropertyDescriptor(C, key);
      if (key !== "prototype") defineProperty(ours, key, d);
      else defineProperty(ours, key, { value: d.value, writable: false });
    }
    defineProperty(C.prototype, "constructor", { value: ours });
    defineProperty(globalThis, C.name, { value: ours });
  };
  replace(ArrayBuffer, (C, [length, options], target) => {
    const size = toIndex(length);
    const most = isObject(options) ? options.maxByteLength : undefined;
    if (most === undefined) return construct(C, [size], target);
    const limit = toIndex(most);
    if (size > limit) throw new RangeError("the length is greater than the maximum");
    return bufferMake(construct(C, [size], target), size, limit);
  });
  const most = (v) => {
    try { return bufferMost(v); } catch { return undefined; }
  };
  const views = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array];
  for (const C of views) {
    const size = C.BYTES_PER_ELEMENT;
    replace(C, (C, args, target) => {
      const [buffer, offset, length] = args;
      if (!isObject(buffer) || most(buffer) === undefined || bufferDetached(buffer)) return construct(C, args, target);
      const begin = toIndex(offset);
      const tracking = length === undefined;
      let count = length;
      if (tracking && begin <= buffer.byteLength) count = Math.floor((buffer.byteLength - begin) / size);
      const view = construct(C, [buffer, begin, count], target);
      bufferView(buffer, view, tracking);
      return view;
    });
  }
  replace(DataView, (C, args, target) => {
    const view = construct(C, args, target);
    if (most(args[0]) !== undefined) bufferView(args[0], view, args[2] === undefined);
    return view;
  });

  // goja's map and with take the length of their receiver again after they have made the
  // array that they fill, and would write beyond it.
  const TypedArray = Object.getPrototypeOf(Int8Array.prototype);
  const { keys } = TypedArray;
  const tag = Object.getOwnPropertyDescriptor(TypedArray, Symbol.toStringTag).get;
  const length = Object.getOwnPropertyDescriptor(TypedArray, "length").get;
  const lengthOf = (v) => {
    Reflect.apply(keys, v, []); // TypeError for other values, and for what is out of bounds
    return Reflect.apply(length, v, []);
  };
  const kindOf = (v) => Reflect.apply(tag, v, []);
  const own = Object.fromEntries(views.map((C) => [C.name, globalThis[C.name]]));
  native.constructors = own; // float16.js adds its own
  const isBig = (v) => kindOf(v).startsWith("Big");
  const speciesOf = (v) => {
    const { constructor } = v;
    if (constructor === undefined) return own[kindOf(v)];
    if (!isObject(constructor)) throw new TypeError("the constructor is not an object");
    return constructor[Symbol.species] ?? own[kindOf(v)];
  };
  const methods = {
    map(f, thisArg) {
      const size = lengthOf(this);
      if (typeof f !== "function") throw new TypeError("the callback is not a function");
      const out = new (speciesOf(this))(size);
      if (lengthOf(out) < size) throw new TypeError("the new array is too small");
      if (isBig(out) !== isBig(this)) throw new TypeError("the new array has other elements");
      for (let k = 0; k < size; k++) out[k] = Reflect.apply(f, thisArg, [this[k], k, this]);
      return out;
    },
    with(index, value) {
      const size = lengthOf(this);
      const relative = Math.trunc(+index) || 0;
      const at = relative < 0 ? size + relative : relative;
      const v = isBig(this) ? BigInt.asIntN(64, value) : +value;
      if (at < 0 || at >= Reflect.apply(length, this, [])) throw new RangeError("Invalid typed array index");
      const out = new own[kindOf(this)](size);
      for (let k = 0; k < size; k++) out[k] = k === at ? v : this[k];
      return out;
    },
  };
  for (const name of Object.keys(methods)) {
    defineProperty(TypedArray, name, { value: methods[name], writable: true, enumerable: false, configurable: true });
  }
  defineProperty(TypedArray.map, "length", { value: 1, configurable: true });
})
