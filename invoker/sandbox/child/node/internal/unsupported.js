// Completes a module: what Node exports and this platform lacks throws at use.
const { unsupported } = require("internal/errors");
module.exports = function complete(name, module, names) {
  const { exports } = module;
  if (typeof exports !== "object" && typeof exports !== "function") return;
  for (const key of names) if (!(key in exports)) exports[key] = unsupported(name, key);
};
