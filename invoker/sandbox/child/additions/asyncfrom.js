// The functions behind yield* and for await, which esbuild calls where it lowers them. They
// replace esbuild's own, which look methods up in another order, do not close iterators, and
// take null for a method. Await is the class of the values that an async generator waits for.
(function () {
  "use strict";
  const { apply } = Reflect;
  const isObject = (v) => Object(v) === v;
  const object = (v) => { if (!isObject(v)) throw new TypeError("the result of the iterator is not an object"); return v; };
  const method = (o, key) => {
    const f = o[key];
    if (f === undefined || f === null) return undefined;
    if (typeof f !== "function") throw new TypeError("the method of the iterator is not a function");
    return f;
  };
  const attempt = (f) => new Promise((resolve) => resolve(f()));

  // asyncFromSync is CreateAsyncFromSyncIterator.
  const asyncFromSync = (sync) => {
    const { next } = sync;
    const close = () => {
      const f = method(sync, "return");
      if (f !== undefined) object(apply(f, sync, []));
    };
    const fail = (error) => {
      try { close(); } catch { /* the first error counts */ }
      throw error;
    };
    const settle = (result, closing) => {
      object(result);
      const done = !!result.done;
      const { value } = result;
      let promise;
      try { promise = Promise.resolve(value); } catch (e) {
        if (done || !closing) throw e;
        fail(e);
      }
      return promise.then((value) => ({ value, done }), done || !closing ? undefined : fail);
    };
    return {
      next: (v) => attempt(() => settle(apply(next, sync, [v]), true)),
      return: (v) => attempt(() => {
        const f = method(sync, "return");
        return f === undefined ? { value: v, done: true } : settle(apply(f, sync, [v]), false);
      }),
      throw: (v) => attempt(() => {
        const f = method(sync, "throw");
        if (f !== undefined) return settle(apply(f, sync, [v]), true);
        close();
        throw new TypeError("the iterator has no method throw");
      }),
    };
  };
  const iteratorOf = (items) => {
    const open = method(items, Symbol.asyncIterator);
    if (open !== undefined) return object(apply(open, items, []));
    return asyncFromSync(object(items[Symbol.iterator]()));
  };

  // Each step of the inner iterator is yielded to the generator as a value to wait for; the
  // generator calls again with what came of it.
  const once = (result) => ({ done: object(result).done, value: result.value });
  const yieldStar = (Await) => (items) => {
    const iterator = iteratorOf(items);
    const { next } = iterator;
    let finish;
    const wait = (promise, then) => {
      finish = then;
      return { done: false, value: new Await(promise) };
    };
    const step = (name, start) => (v) => {
      if (finish === undefined) return start(v);
      const then = finish;
      finish = undefined;
      if (name === "throw") throw v;
      return then(v);
    };
    const it = {
      next: step("next", (v) => wait(attempt(() => apply(next, iterator, [v])), once)),
      return: step("return", (v) => {
        const f = method(iterator, "return");
        if (f === undefined) return wait(attempt(() => v), (value) => ({ done: true, value }));
        return wait(attempt(() => apply(f, iterator, [v])), once);
      }),
      throw: step("throw", (v) => {
        const f = method(iterator, "throw");
        if (f !== undefined) return wait(attempt(() => apply(f, iterator, [v])), once);
        const none = (result) => {
          object(result);
          throw new TypeError("the iterator has no method throw");
        };
        const end = method(iterator, "return");
        return end === undefined ? none({}) : wait(attempt(() => apply(end, iterator, [])), none);
      }),
      [Symbol.iterator]: () => it,
    };
    return it;
  };

  // generator gives a function, which esbuild made of an asynchronous generator, the prototypes
  // of one. What it returns has methods of its own.
  const constant = (o, key, value) => Object.defineProperty(o, key, { value, configurable: true });
  const AsyncGeneratorFunction = function AsyncGeneratorFunction() {
    throw new TypeError("asynchronous generators cannot be made of text");
  };
  const asyncIterator = Object.create(Object.prototype);
  constant(asyncIterator, Symbol.asyncIterator, { [Symbol.asyncIterator]() { return this; } }[Symbol.asyncIterator]);
  const prototype = Object.create(asyncIterator);
  for (const name of ["next", "return", "throw"]) {
    constant(prototype, name, { [name]() { return Promise.reject(new TypeError("this is not an asynchronous generator")); } }[name]);
  }
  const functions = Object.create(Function.prototype);
  constant(prototype, Symbol.toStringTag, "AsyncGenerator");
  constant(prototype, "constructor", functions);
  constant(functions, Symbol.toStringTag, "AsyncGeneratorFunction");
  constant(functions, "prototype", prototype);
  constant(functions, "constructor", AsyncGeneratorFunction);
  Object.defineProperty(AsyncGeneratorFunction, "prototype", { value: functions, writable: false });
  const generator = (f, name) => {
    Object.setPrototypeOf(f, functions);
    Object.defineProperty(f, "prototype", { value: Object.create(prototype), writable: true });
    return name === undefined ? f : constant(f, "name", name);
  };
  Object.defineProperty(globalThis, "__cs_async", { value: { yieldStar, forAwait: iteratorOf, generator } });
})
