// Stores that follow asynchronous code. The context is kept in Go; see realm.snapshot.
const { callback, checkString } = require("internal/errors");

class AsyncLocalStorage {
  #enabled = true;
  #default;
  #name;
  constructor(options) {
    this.#default = options && options.defaultValue;
    this.#name = (options && options.name) || "";
  }
  get name() { return this.#name; }
  run(store, f, ...args) {
    const before = natives.set(this, wrap(store));
    try {
      return f(...args);
    } finally {
      natives.restore(before);
    }
  }
  exit(f, ...args) {
    const before = natives.set(this, undefined);
    try {
      return f(...args);
    } finally {
      natives.restore(before);
    }
  }
  enterWith(store) { natives.set(this, wrap(store)); }
  getStore() {
    const kept = natives.get(this);
    return kept === undefined ? this.#default : kept[0];
  }
  disable() { natives.set(this, undefined); }
  static bind(f) { return AsyncResource.bind(f); }
  static snapshot() {
    const context = natives.snapshot();
    return (f, ...args) => inside(context, f, undefined, args);
  }
}

// wrap keeps undefined apart from no store.
const wrap = (store) => [store];

function inside(context, f, self, args) {
  const before = natives.restore(context);
  try {
    return Reflect.apply(f, self, args);
  } finally {
    natives.restore(before);
  }
}

let ids = 1;

class AsyncResource {
  #context = natives.snapshot();
  #id = ++ids;
  constructor(type) { checkString(type, "type"); }
  runInAsyncScope(f, self, ...args) { return inside(this.#context, f, self, args); }
  emitDestroy() { return this; }
  asyncId() { return this.#id; }
  triggerAsyncId() { return 0; }
  bind(f, self) {
    callback(f, "fn");
    const resource = this;
    const bound = function (...args) { return resource.runInAsyncScope(f, self === undefined ? this : self, ...args); };
    Object.defineProperty(bound, "length", { value: f.length, configurable: true });
    return bound;
  }
  static bind(f, type, self) { return new AsyncResource(type || f.name || "bound-anonymous-fn").bind(f, self); }
}

const top = {};
module.exports = {
  AsyncLocalStorage, AsyncResource,
  // There are no identities of asynchronous operations, and so no hooks.
  executionAsyncId: () => 1, triggerAsyncId: () => 0, executionAsyncResource: () => top,
  createHook: () => ({ enable() { return this; }, disable() { return this; } }),
  asyncWrapProviders: Object.freeze({ NONE: 0 }),
};
