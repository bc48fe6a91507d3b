// The accessors of Annex B.
(function () {
  "use strict";
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const object = (v) => {
    if (v === undefined || v === null) throw new TypeError("Cannot convert undefined or null to object");
    return Object(v);
  };
  const key = (k) => (typeof k === "symbol" ? k : Reflect.ownKeys({ [k]: 0 })[0]);
  const define = (o, k, part, f) => {
    if (typeof f !== "function") throw new TypeError("the accessor is not a function");
    defineProperty(o, key(k), { [part]: f, enumerable: true, configurable: true });
  };
  const find = (o, k, part) => {
    for (k = key(k); o !== null; o = getPrototypeOf(o)) {
      const d = getOwnPropertyDescriptor(o, k);
      if (d !== undefined) return d[part];
    }
    return undefined;
  };
  const methods = {
    __defineGetter__(name, getter) { define(object(this), name, "get", getter); },
    __defineSetter__(name, setter) { define(object(this), name, "set", setter); },
    __lookupGetter__(name) { return find(object(this), name, "get"); },
    __lookupSetter__(name) { return find(object(this), name, "set"); },
  };
  for (const name of Object.keys(methods)) {
    if (!(name in Object.prototype)) defineProperty(Object.prototype, name, { value: methods[name], writable: true, configurable: true });
  }
})
