// What the language has and goja lacks, for programs that name it. Each keeps to
// its text in ECMA-262 as far as scripts can tell.
(function () {
  "use strict";
  const { defineProperty, create } = Object;
  const add = (to, name, f) => {
    if (!(name in to)) defineProperty(to, name, { value: f, writable: true, configurable: true });
  };
  add(Object, "groupBy", function groupBy(items, key) {
    const groups = create(null);
    let i = 0;
    for (const item of items) {
      const k = key(item, i++);
      (groups[k] ??= []).push(item);
    }
    return groups;
  });
  add(Map, "groupBy", function groupBy(items, key) {
    const groups = new Map();
    let i = 0;
    for (const item of items) {
      const k = key(item, i++);
      if (groups.has(k)) groups.get(k).push(item);
      else groups.set(k, [item]);
    }
    return groups;
  });
  add(Promise, "withResolvers", function withResolvers() {
    let resolve, reject;
    const promise = new this((yes, no) => { resolve = yes; reject = no; });
    return { promise, resolve, reject };
  });
  add(Promise, "try", function (f, ...args) {
    return new this((resolve) => resolve(f(...args)));
  });
  add(Array, "fromAsync", async function fromAsync(items, map, thisArg) {
    const out = [];
    const method = items[Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator")];
    const put = async (v) => { out.push(map ? await map.call(thisArg, await v, out.length) : await v); };
    if (method) {
      const it = method.call(items);
      for (let step; !(step = await it.next()).done;) await put(step.value);
    } else if (items[Symbol.iterator]) {
      for (const v of items) await put(v);
    } else {
      for (let i = 0; i < items.length; i++) await put(items[i]);
    }
    return out;
  });
})
