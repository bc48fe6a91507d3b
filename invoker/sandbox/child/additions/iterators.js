// Iterator and its helpers.
(function () {
  "use strict";
  const { defineProperty, getPrototypeOf, create, getOwnPropertyDescriptor } = Object;
  const { apply } = Reflect;
  const prototype = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
  if ("map" in prototype) return;
  const define = (to, methods) => {
    for (const key of Reflect.ownKeys(methods)) {
      const d = getOwnPropertyDescriptor(methods, key);
      d.enumerable = false;
      defineProperty(to, key, d);
    }
  };
  const isObject = (v) => Object(v) === v;
  const object = (v) => { if (!isObject(v)) throw new TypeError("the receiver is not an object"); return v; };

  function Iterator() {
    if (new.target === undefined || new.target === Iterator) throw new TypeError("Iterator cannot be constructed directly");
  }
  defineProperty(Iterator, "prototype", { value: prototype, writable: false });
  defineProperty(globalThis, "Iterator", { value: Iterator, writable: true, configurable: true });
  // Properties of the prototype that an assignment to an heir must not change (SetterThatIgnoresPrototypeProperties).
  const weird = (key, value) => {
    const d = getOwnPropertyDescriptor({
      get [key]() { return value; },
      set [key](v) {
        if (object(this) === prototype) throw new TypeError("the property cannot be assigned");
        if (getOwnPropertyDescriptor(this, key) === undefined) {
          defineProperty(this, key, { value: v, writable: true, enumerable: true, configurable: true });
        } else if (!Reflect.set(this, key, v, this)) throw new TypeError("the property cannot be assigned");
      },
    }, key);
    defineProperty(prototype, key, { get: d.get, set: d.set, enumerable: false, configurable: true });
  };
  weird("constructor", Iterator);
  weird(Symbol.toStringTag, "Iterator");

  // A record is an iterator with its method next, as GetIteratorDirect returns it.
  const direct = (iterator) => ({ iterator, next: iterator.next });
  const done = create(null); // the value of a record without another one
  const step = (record) => {
    const result = apply(record.next, record.iterator, []);
    if (!isObject(result)) throw new TypeError("the result of next is not an object");
    return result.done ? done : result.value;
  };
  const close = (iterator) => {
    const method = iterator.return;
    if (method === undefined || method === null) return;
    if (!isObject(apply(method, iterator, []))) throw new TypeError("the result of return is not an object");
  };
  // fail closes an iterator and throws what went wrong before.
  const fail = (iterator, error) => {
    try { close(iterator); } catch { /* the first error counts */ }
    throw error;
  };
  const attempt = (iterator, f) => {
    try { return f(); } catch (e) { fail(iterator, e); }
  };
  const callable = (iterator, f) => {
    if (typeof f !== "function") fail(iterator, new TypeError("the argument is not a function"));
    return f;
  };
  const count = (iterator, limit) => {
    const n = attempt(iterator, () => +limit);
    if (n !== n) fail(iterator, new RangeError("the limit is not a number"));
    const whole = Math.trunc(n);
    if (whole < 0 || (whole > 2 ** 53 - 1 && whole !== Infinity)) fail(iterator, new RangeError("the limit is out of range"));
    return whole;
  };
  const flattenable = (v, strings) => {
    if (!isObject(v) && !(strings && typeof v === "string")) throw new TypeError("the value is not iterable");
    const method = v[Symbol.iterator];
    const iterator = method === undefined || method === null ? v : apply(method, v, []);
    if (!isObject(iterator)) throw new TypeError("the iterator is not an object");
    return direct(iterator);
  };

  const states = new WeakMap();
  const helperPrototype = create(prototype);
  const stateOf = (v) => {
    const state = isObject(v) ? states.get(v) : undefined;
    if (state === undefined) throw new TypeError("the receiver is not an Iterator Helper");
    if (state.running) throw new TypeError("the iterator is already running");
    return state;
  };
  define(helperPrototype, {
    next() {
      const state = stateOf(this);
      if (state.ended) return { value: undefined, done: true };
      state.begun = true;
      state.running = true;
      let value = done;
      try { value = state.step(); } finally {
        state.running = false;
        if (value === done) state.ended = true;
      }
      return value === done ? { value: undefined, done: true } : { value, done: false };
    },
    return() {
      const state = stateOf(this);
      if (state.ended) return { value: undefined, done: true };
      state.ended = true;
      state.running = state.begun;
      try { state.close(); } finally { state.running = false; }
      return { value: undefined, done: true };
    },
  });
  defineProperty(helperPrototype, Symbol.toStringTag, { value: "Iterator Helper", configurable: true });
  const helper = (step, close) => {
    const h = create(helperPrototype);
    states.set(h, { step, close, running: false, ended: false, begun: false });
    return h;
  };

  define(prototype, {
    map(mapper) {
      const iterator = object(this);
      callable(iterator, mapper);
      const record = direct(iterator);
      let i = 0;
      return helper(() => {
        const v = step(record);
        return v === done ? done : attempt(iterator, () => mapper(v, i++));
      }, () => close(iterator));
    },
    filter(predicate) {
      const iterator = object(this);
      callable(iterator, predicate);
      const record = direct(iterator);
      let i = 0;
      return helper(() => {
        for (;;) {
          const v = step(record);
          if (v === done || attempt(iterator, () => predicate(v, i++))) return v;
        }
      }, () => close(iterator));
    },
    take(limit) {
      const iterator = object(this);
      let left = count(iterator, limit);
      const record = direct(iterator);
      return helper(() => {
        if (left === 0) { close(iterator); return done; }
        left--;
        return step(record);
      }, () => close(iterator));
    },
    drop(limit) {
      const iterator = object(this);
      let left = count(iterator, limit);
      const record = direct(iterator);
      return helper(() => {
        for (; left > 0; left--) if (step(record) === done) return done;
        return step(record);
      }, () => close(iterator));
    },
    flatMap(mapper) {
      const iterator = object(this);
      callable(iterator, mapper);
      const record = direct(iterator);
      let i = 0, inner;
      return helper(() => {
        for (;;) {
          if (inner === undefined) {
            const v = step(record);
            if (v === done) return done;
            inner = attempt(iterator, () => flattenable(mapper(v, i++), false));
          }
          const v = attempt(iterator, () => step(inner));
          if (v !== done) return v;
          inner = undefined;
        }
      }, () => {
        if (inner !== undefined) attempt(iterator, () => close(inner.iterator));
        close(iterator);
      });
    },
    reduce(reducer, ...initial) {
      const iterator = object(this);
      callable(iterator, reducer);
      const record = direct(iterator);
      let i = 0, sum;
      if (initial.length === 0) {
        sum = step(record);
        if (sum === done) throw new TypeError("Reduce of an empty iterator with no initial value");
        i = 1;
      } else sum = initial[0];
      for (;;) {
        const v = step(record);
        if (v === done) return sum;
        sum = attempt(iterator, () => reducer(sum, v, i++));
      }
    },
    toArray() {
      const record = direct(object(this));
      const items = [];
      for (;;) {
        const v = step(record);
        if (v === done) return items;
        defineProperty(items, items.length, { value: v, writable: true, enumerable: true, configurable: true });
      }
    },
    forEach(f) {
      const iterator = object(this);
      callable(iterator, f);
      const record = direct(iterator);
      for (let i = 0; ; ) {
        const v = step(record);
        if (v === done) return;
        attempt(iterator, () => f(v, i++));
      }
    },
    some(predicate) {
      const iterator = object(this);
      callable(iterator, predicate);
      const record = direct(iterator);
      for (let i = 0; ; ) {
        const v = step(record);
        if (v === done) return false;
        if (attempt(iterator, () => predicate(v, i++))) { close(iterator); return true; }
      }
    },
    every(predicate) {
      const iterator = object(this);
      callable(iterator, predicate);
      const record = direct(iterator);
      for (let i = 0; ; ) {
        const v = step(record);
        if (v === done) return true;
        if (!attempt(iterator, () => predicate(v, i++))) { close(iterator); return false; }
      }
    },
    find(predicate) {
      const iterator = object(this);
      callable(iterator, predicate);
      const record = direct(iterator);
      for (let i = 0; ; ) {
        const v = step(record);
        if (v === done) return undefined;
        if (attempt(iterator, () => predicate(v, i++))) { close(iterator); return v; }
      }
    },
  });
  defineProperty(prototype.reduce, "length", { value: 1, configurable: true });

  if (Symbol.dispose !== undefined) {
    define(prototype, { [Symbol.dispose]() { this.return?.(); } });
  }

  const wrapped = new WeakMap();
  const wrapPrototype = create(prototype);
  const recordOf = (v) => {
    const record = isObject(v) ? wrapped.get(v) : undefined;
    if (record === undefined) throw new TypeError("the receiver is not a wrapped iterator");
    return record;
  };
  define(wrapPrototype, {
    next() {
      const record = recordOf(this);
      return apply(record.next, record.iterator, []);
    },
    return() {
      const { iterator } = recordOf(this);
      const method = iterator.return;
      if (method === undefined) return { value: undefined, done: true };
      return apply(method, iterator, []);
    },
  });
  const hasInstance = Function.prototype[Symbol.hasInstance];
  define(Iterator, {
    from(v) {
      const record = flattenable(v, true);
      if (apply(hasInstance, Iterator, [record.iterator])) return record.iterator;
      const w = create(wrapPrototype);
      wrapped.set(w, record);
      return w;
    },
    concat(...items) {
      const opened = items.map((item) => {
        if (!isObject(item)) throw new TypeError("the argument is not iterable");
        const method = item[Symbol.iterator];
        if (typeof method !== "function") throw new TypeError("the argument is not iterable");
        return { item, method };
      });
      let at = 0, inner;
      return helper(() => {
        for (;;) {
          if (inner === undefined) {
            if (at === opened.length) return done;
            const { item, method } = opened[at++];
            const iterator = apply(method, item, []);
            if (!isObject(iterator)) throw new TypeError("the iterator is not an object");
            inner = direct(iterator);
          }
          const v = step(inner);
          if (v !== done) return v;
          inner = undefined;
        }
      }, () => { if (inner !== undefined) close(inner.iterator); });
    },
  });
  defineProperty(Iterator.concat, "length", { value: 0, configurable: true });
})
