// A module of asynchronous functions that reject: a caller handles what they throw in the
// way in which it handles other failures.
const { unsupportedError } = require("internal/errors");
module.exports = function rejecting(name, exports) {
  return new Proxy(exports, {
    set(target, key, value) {
      if (typeof value === "function" && typeof key === "string") {
        value = { async [key]() { throw unsupportedError(name, key); } }[key];
      }
      target[key] = value;
      return true;
    },
  });
};
