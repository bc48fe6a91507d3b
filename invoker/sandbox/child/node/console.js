const { format } = require("internal/inspect");

// Console writes to streams; the console of the platform writes to the log.
function Console(options, stderr) {
  const out = options && options.stdout ? options.stdout : options, err = (options && options.stderr) || stderr || out;
  const to = (stream) => (...args) => { stream.write(format(...args) + "\n"); };
  const self = new.target ? this : Object.create(Console.prototype);
  self.log = self.info = self.debug = to(out);
  self.error = self.warn = to(err);
  self.trace = (...args) => self.error("Trace:", ...args);
  self.dir = (v) => self.log(v);
  self.assert = (ok, ...args) => { if (!ok) self.warn("Assertion failed" + (args.length ? ":" : ""), ...args); };
  return self;
}
module.exports = Object.assign(Object.create(console), { Console });
for (const key of ["log", "info", "debug", "warn", "error", "trace", "table", "dir", "dirxml", "assert", "count", "countReset", "group", "groupCollapsed", "groupEnd", "time", "timeEnd", "timeLog"]) {
  if (typeof console[key] === "function") module.exports[key] = (...args) => console[key](...args);
}
