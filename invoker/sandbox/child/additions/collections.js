// Static methods that goja lacks. Each keeps to its text in ECMA-262 as far as scripts can
// tell.
(function () {
  "use strict";
  const { defineProperty, create } = Object;
  const { apply, construct } = Reflect;
  const isObject = (v) => Object(v) === v;
  const add = (to, methods) => {
    for (const name of Object.keys(methods)) {
      if (!(name in to)) defineProperty(to, name, { value: methods[name], writable: true, configurable: true });
    }
  };
  const put = (to, key, value) => defineProperty(to, key, { value, writable: true, enumerable: true, configurable: true });
  const groups = (items, key, add) => {
    if (items === undefined || items === null) throw new TypeError("the items are not iterable");
    if (typeof key !== "function") throw new TypeError("the callback is not a function");
    let i = 0;
    for (const item of items) add(key(item, i++), item);
  };
  add(Object, {
    groupBy(items, key) {
      const out = create(null);
      groups(items, key, (k, item) => { (out[k] ??= []).push(item); });
      return out;
    },
  });
  add(Map, {
    groupBy(items, key) {
      const out = new Map();
      groups(items, key, (k, item) => { out.has(k) ? out.get(k).push(item) : out.set(k, [item]); });
      return out;
    },
  });
  // capability is NewPromiseCapability.
  const capability = (C) => {
    let resolve, reject;
    const promise = new C((yes, no) => {
      if (resolve !== undefined || reject !== undefined) throw new TypeError("the executor was called before");
      resolve = yes;
      reject = no;
    });
    if (typeof resolve !== "function" || typeof reject !== "function") throw new TypeError("the promise has no functions");
    return { promise, resolve, reject };
  };
  add(Promise, {
    withResolvers() { return capability(this); },
    try(f, ...args) {
      if (!isObject(this)) throw new TypeError("Promise.try: the receiver is not an object");
      const c = capability(this);
      let value;
      try { value = f(...args); } catch (e) {
        c.reject(e);
        return c.promise;
      }
      c.resolve(value);
      return c.promise;
    },
  });
  defineProperty(Promise.try, "length", { value: 1, configurable: true });

  const isConstructor = (C) => {
    if (typeof C !== "function") return false;
    try { construct(Object, [], C); return true; } catch { return false; }
  };
  const method = (o, key) => {
    const f = o[key];
    if (f === undefined || f === null) return undefined;
    if (typeof f !== "function") throw new TypeError("the method is not a function");
    return f;
  };
  const object = (v) => { if (!isObject(v)) throw new TypeError("the result is not an object"); return v; };
  const toLength = (v) => { v = Math.trunc(+v) || 0; return v < 0 ? 0 : Math.min(v, 2 ** 53 - 1); };
  const fromAsync = async (C, items, map, thisArg) => {
    if (map !== undefined && typeof map !== "function") throw new TypeError("Array.fromAsync: the callback is not a function");
    const open = method(items, Symbol.asyncIterator);
    const openSync = open === undefined ? method(items, Symbol.iterator) : undefined;
    if (open === undefined && openSync === undefined) {
      const from = Object(items);
      const length = toLength(from.length);
      const out = isConstructor(C) ? new C(length) : length > 2 ** 32 - 1 ? Array(-1) : Array(length);
      for (let k = 0; k < length; k++) {
        let v = await from[k];
        if (map !== undefined) v = await apply(map, thisArg, [v, k]);
        put(out, k, v);
      }
      out.length = length;
      return out;
    }
    const out = isConstructor(C) ? new C() : [];
    const iterator = object(apply(open ?? openSync, items, []));
    const { next } = iterator;
    const close = async (error) => {
      try {
        const f = iterator.return;
        if (f !== undefined && f !== null) await apply(f, iterator, []);
      } catch { /* the first error counts */ }
      throw error;
    };
    for (let k = 0; ; k++) {
      const result = object(open !== undefined ? await apply(next, iterator, []) : apply(next, iterator, []));
      if (result.done) {
        out.length = k;
        return out;
      }
      let v = result.value;
      try {
        if (open === undefined) v = await v;
        if (map !== undefined) v = await apply(map, thisArg, [v, k]);
        put(out, k, v);
      } catch (e) {
        await close(e);
      }
    }
  };
  add(Array, { fromAsync(items, map, thisArg) { return fromAsync(this, items, map, thisArg); } });
  defineProperty(Array.fromAsync, "length", { value: 1, configurable: true });
})
