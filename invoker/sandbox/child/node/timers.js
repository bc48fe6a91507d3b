// Timers that are objects, as in Node.
const { callback } = require("internal/errors");
const custom = Symbol.for("nodejs.util.promisify.custom");

class Timeout {
  #set;
  #id;
  #live = true;
  #counts = true;
  constructor(set) {
    this.#set = set;
    this.#id = set(this);
  }
  // There is no process that a timer could keep: an activation ends with its handler.
  ref() { this.#counts = true; return this; }
  unref() { this.#counts = false; return this; }
  hasRef() { return this.#counts; }
  refresh() {
    natives.clear(this.#id);
    if (this.#live) this.#id = this.#set(this);
    return this;
  }
  close() { this.#live = false; natives.clear(this.#id); return this; }
  [Symbol.toPrimitive]() { return this.#id; }
}
if (Symbol.dispose) Timeout.prototype[Symbol.dispose] = Timeout.prototype.close;
class Immediate extends Timeout {}

function setTimeout(f, ms, ...args) {
  callback(f);
  return new Timeout((t) => natives.setTimeout(function () { Reflect.apply(f, t, args); }, ms));
}
function setInterval(f, ms, ...args) {
  callback(f);
  return new Timeout((t) => natives.setInterval(function () { Reflect.apply(f, t, args); }, ms));
}
function setImmediate(f, ...args) {
  callback(f);
  return new Immediate((t) => natives.setImmediate(function () { Reflect.apply(f, t, args); }));
}
function clear(t) {
  if (t instanceof Timeout) t.close();
  else if (t != null) natives.clear(Number(t));
}

Object.defineProperty(setTimeout, custom, { enumerable: true, get: () => require("timers/promises").setTimeout });
Object.defineProperty(setImmediate, custom, { enumerable: true, get: () => require("timers/promises").setImmediate });

module.exports = {
  setTimeout, setInterval, setImmediate, clearTimeout: clear, clearInterval: clear, clearImmediate: clear,
  get promises() { return require("timers/promises"); },
};
