// WeakRef, which really is weak, and FinalizationRegistry, which never calls back: the
// language allows an engine not to.
(function (native) {
  "use strict";
  const { defineProperty } = Object;
  const define = (name, value) => {
    if (!(name in globalThis)) defineProperty(globalThis, name, { value, writable: true, configurable: true });
  };
  const { keyFor } = Symbol;
  const holdable = (v) => Object(v) === v || (typeof v === "symbol" && keyFor(v) === undefined);

  // Targets that were created or read in this job stay alive until it ends.
  const kept = new Set();
  let scheduled = false;
  const keep = (v) => {
    kept.add(v);
    if (scheduled) return v;
    scheduled = true;
    Promise.resolve().then(() => { scheduled = false; kept.clear(); });
    return v;
  };
  class WeakRef {
    #target;
    constructor(target) {
      if (!holdable(target)) throw new TypeError("WeakRef: the target must be an object or a symbol that is not registered");
      this.#target = typeof target === "symbol" ? target : native.weakMake(target);
      keep(target);
    }
    deref() {
      const target = this.#target;
      if (typeof target === "symbol") return target;
      const v = native.weakGet(target);
      return v === undefined ? undefined : keep(v);
    }
  }
  const none = {};
  class FinalizationRegistry {
    #tokens = new WeakMap();
    #symbols = new Set();
    constructor(cleanup) {
      if (typeof cleanup !== "function") throw new TypeError("FinalizationRegistry: the callback is not a function");
    }
    register(target, held, ...token) {
      const tokens = this.#tokens;
      if (!holdable(target)) throw new TypeError("register: the target must be an object or a symbol that is not registered");
      if (Object.is(target, held)) throw new TypeError("register: the target and the held value must differ");
      const [t] = token;
      if (!holdable(t)) {
        if (t !== undefined) throw new TypeError("register: the token must be an object or a symbol that is not registered");
        return;
      }
      if (typeof t === "symbol") this.#symbols.add(t);
      else tokens.set(t, none);
    }
    unregister(token) {
      const tokens = this.#tokens;
      if (!holdable(token)) throw new TypeError("unregister: the token must be an object or a symbol that is not registered");
      return typeof token === "symbol" ? this.#symbols.delete(token) : tokens.delete(token);
    }
    cleanupSome(callback) {
      void this.#tokens;
      if (callback !== undefined && typeof callback !== "function") throw new TypeError("cleanupSome: the callback is not a function");
    }
  }
  delete FinalizationRegistry.prototype.cleanupSome;
  defineProperty(FinalizationRegistry.prototype.register, "length", { value: 2, configurable: true });
  for (const C of [WeakRef, FinalizationRegistry]) {
    defineProperty(C.prototype, Symbol.toStringTag, { value: C.name, configurable: true });
    define(C.name, C);
  }
})
