// from of typed arrays, where the source is a string or another primitive, and set, where
// the source is an empty typed array: goja's ends the process.
(function () {
  "use strict";
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { apply } = Reflect;
  const TypedArray = getPrototypeOf(Uint8Array);
  const { prototype, from } = TypedArray;
  const define = (to, method) => {
    defineProperty(method, "length", { value: 1, configurable: true });
    defineProperty(to, method.name, { value: method, writable: true, configurable: true });
  };
  define(TypedArray, { from(source, map, thisArg) {
    const items = source === undefined || source === null ? source : Object(source);
    return apply(from, this, [items, map, thisArg]);
  } }.from);

  const { set, keys } = prototype;
  const tag = getOwnPropertyDescriptor(prototype, Symbol.toStringTag).get;
  const length = getOwnPropertyDescriptor(prototype, "length").get;
  const nothing = [];
  define(prototype, { set(source, offset) {
    const kind = apply(tag, source, []);
    if (kind === undefined || apply(length, source, []) > 0) return apply(set, this, [source, offset]);
    const own = apply(tag, this, []);
    if (own === undefined) throw new TypeError("the receiver is not a typed array");
    const at = Math.trunc(+offset) || 0;
    if (at < 0) throw new RangeError("the offset is negative");
    apply(keys, this, []); // TypeError for what is detached or out of bounds
    apply(keys, source, []);
    if ((own[0] === "B") !== (kind[0] === "B")) throw new TypeError("Cannot mix BigInt and other types, use explicit conversions");
    apply(set, this, [nothing, at]);
  } }.set);
})
