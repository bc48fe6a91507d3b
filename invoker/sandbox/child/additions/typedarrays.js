// from of typed arrays, where the source is a string or another primitive.
(function () {
  "use strict";
  const TypedArray = Object.getPrototypeOf(Uint8Array);
  const { from } = TypedArray;
  Object.defineProperty(TypedArray, "from", {
    value: { from(source, map, thisArg) {
      const items = source === undefined || source === null ? source : Object(source);
      return Reflect.apply(from, this, [items, map, thisArg]);
    } }.from, writable: true, configurable: true,
  });
  Object.defineProperty(TypedArray.from, "length", { value: 1, configurable: true });
})
