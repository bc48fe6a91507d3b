// goja passes the traps apply and construct an array that shares the stack of the machine: it
// changes when the trap has returned. The handler of a callable target gets a copy instead.
(function () {
  "use strict";
  const Native = Proxy, { apply } = Reflect, { create, defineProperty } = Object;
  const { slice } = Array.prototype, copy = (args) => apply(slice, args, []);
  const isObject = (v) => (typeof v === "object" && v !== null) || typeof v === "function";

  // shield inherits the traps of handler, as they are when they are called, but for the two.
  const shield = (target, handler) => {
    if (typeof target !== "function" || !isObject(handler)) return handler;
    const shielded = create(handler);
    for (const name of ["apply", "construct"]) {
      defineProperty(shielded, name, {
        get() {
          const trap = handler[name];
          if (typeof trap !== "function") return trap;
          return name === "apply"
            ? (t, self, args) => apply(trap, handler, [t, self, copy(args)])
            : (t, args, newTarget) => apply(trap, handler, [t, copy(args), newTarget]);
        },
      });
    }
    return shielded;
  };
  const revocable = { revocable(target, handler) { return Native.revocable(target, shield(target, handler)); } }.revocable;
  const guarded = new Native(Native, {
    construct: (_, args) => new Native(args[0], shield(args[0], args[1])),
    get: (t, name) => (name === "revocable" ? revocable : t[name]),
  });
  defineProperty(globalThis, "Proxy", { value: guarded, writable: true, configurable: true, enumerable: false });
})
