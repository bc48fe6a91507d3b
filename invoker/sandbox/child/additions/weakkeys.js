// Symbols as keys of WeakMap and WeakSet.
(function () {
  "use strict";
  const { apply } = Reflect;
  const { keyFor } = Symbol;
  const symbols = new WeakMap(); // of a WeakMap or a WeakSet: its symbols
  const { get, set } = WeakMap.prototype;
  const own = (o) => apply(get, symbols, [o]);
  const isKey = (k) => typeof k === "symbol" && keyFor(k) === undefined;
  const patch = (C, add) => {
    const { prototype } = C;
    const define = (methods) => {
      for (const name of Object.keys(methods)) Object.defineProperty(prototype, name, { value: methods[name], writable: true, configurable: true });
    };
    const native = { get: prototype.get, has: prototype.has, delete: prototype.delete, add: prototype[add] };
    const probe = {};
    const store = (o, k, v) => {
      apply(native.has, o, [probe]); // throws where o is none of C
      let map = own(o);
      if (map === undefined) apply(set, symbols, [o, map = new Map()]);
      map.set(k, v);
      return o;
    };
    define({
      has(key) {
        const found = apply(native.has, this, [key]);
        return found || (isKey(key) && own(this)?.has(key) === true);
      },
      delete(key) {
        const found = apply(native.delete, this, [key]);
        return found || (isKey(key) && own(this)?.delete(key) === true);
      },
    });
    if (add === "add") define({ add(value) { return isKey(value) ? store(this, value, true) : apply(native.add, this, [value]); } });
    else define({
      get(key) { return isKey(key) ? (apply(native.get, this, [probe]), own(this)?.get(key)) : apply(native.get, this, [key]); },
      set(key, value) { return isKey(key) ? store(this, key, value) : apply(native.add, this, [key, value]); },
    });
  };
  // The constructors call the methods that they find, so that symbols in their argument work.
  patch(WeakMap, "set");
  patch(WeakSet, "add");
})
