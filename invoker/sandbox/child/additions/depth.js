// The depth of calls, for the guards of functions that call themselves.
(function (native) {
  "use strict";
  Object.defineProperty(globalThis, "__cs_depth", { value: native.depth });
})
