// What the classes of the web have in common (https://webidl.spec.whatwg.org).
const { then } = Promise.prototype, { apply } = Reflect, { charCodeAt } = String.prototype;

const react = (promise, f, g) => apply(then, promise, [f, g]);
const ignore = () => {};
// handled marks a rejection as handled: a script that reads the promise still sees it.
const handled = (promise) => { react(promise, undefined, ignore); return promise; };
const resolved = (value) => new Promise((resolve) => { resolve(value); });
const rejected = (reason) => new Promise((_, reject) => { reject(reason); });

// attempt calls f and returns a promise of its result, which is rejected if f throws.
function attempt(f) {
  try {
    return resolved(f());
  } catch (e) {
    return rejected(e);
  }
}

// promised calls f, which makes a promise, and returns that one: the script must not see
// that of attempt, which settles two microtasks later. It is rejected if f throws.
function promised(f) {
  try {
    return f();
  } catch (e) {
    return rejected(e);
  }
}

// request is a promise for a script that is settled from outside.
function request() {
  const d = { pending: true };
  d.promise = new Promise((resolve, reject) => {
    d.resolve = (v) => { d.pending = false; resolve(v); };
    d.reject = (e) => { d.pending = false; reject(e); };
  });
  return d;
}

// deferred is a request whose rejection counts as handled.
function deferred() {
  const d = request();
  handled(d.promise);
  return d;
}

// Queue is a list of which the first item is taken in constant time.
class Queue {
  #items = [];
  #head = 0;
  get length() { return this.#items.length - this.#head; }
  push(item) { this.#items[this.#items.length] = item; }
  first() { return this.#items[this.#head]; }
  shift() {
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head * 2 >= this.#items.length) {
      const rest = [];
      for (let i = this.#head; i < this.#items.length; i++) rest[rest.length] = this.#items[i];
      this.#items = rest;
      this.#head = 0;
    }
    return item;
  }
  clear() { this.#items = []; this.#head = 0; }
}

const prototypes = new Map(); // of classes of the platform: their names

// platformClass returns the name of the class of the platform that an object inherits from.
function platformClass(o) {
  for (let p = Object.getPrototypeOf(o); p !== null; p = Object.getPrototypeOf(p)) {
    const name = prototypes.get(p);
    if (name !== undefined) return name;
  }
  return undefined;
}

// expose gives a class the form of an interface: its members are enumerable, and its objects
// have its name.
function expose(C, name = C.name) {
  for (const key of Object.getOwnPropertyNames(C.prototype)) {
    if (key !== "constructor") Object.defineProperty(C.prototype, key, { enumerable: true });
  }
  prototypes.set(C.prototype, name);
  Object.defineProperty(C.prototype, Symbol.toStringTag, { value: name, configurable: true });
  return C;
}

// constants defines the constants of an interface, on the class and on its prototype.
function constants(C, values) {
  for (const name of Object.keys(values)) {
    for (const o of [C, C.prototype]) Object.defineProperty(o, name, { value: values[name], enumerable: true });
  }
}

// nothing is a dictionary without members, also where Object.prototype has some.
const nothing = Object.freeze(Object.create(null));

// dictionary checks an argument that is a dictionary: an object, or nothing.
function dictionary(value, what) {
  if (value === undefined || value === null) return nothing;
  if (typeof value !== "object" && typeof value !== "function") throw new TypeError(`${what} must be an object`);
  return value;
}

// callback reads a member of a dictionary that is a function, or nothing.
function callback(object, name) {
  const f = object[name];
  if (f === undefined) return undefined;
  if (typeof f !== "function") throw new TypeError(`The member ${name} must be a function`);
  return (...args) => apply(f, object, args);
}

function needs(count, least, what) {
  if (count < least) throw new TypeError(`${what}: ${least} argument${least > 1 ? "s are" : " is"} required, ${count} given`);
}

const { ownKeys, getOwnPropertyDescriptor } = Reflect;

// record converts an object to a record of texts, or of byte strings: pairs of a name and a value.
// A symbol that is enumerated is no text, and throws.
function record(object, bytes) {
  const text = (v) => {
    const s = `${v}`;
    if (bytes) for (let i = 0; i < s.length; i++) if (apply(charCodeAt, s, [i]) > 255) throw new TypeError("The text has characters above U+00FF");
    return s;
  };
  const pairs = [], keys = ownKeys(object);
  for (let i = 0; i < keys.length; i++) {
    const d = getOwnPropertyDescriptor(object, keys[i]);
    if (d === undefined || !d.enumerable) continue;
    const name = text(keys[i]);
    pairs[pairs.length] = [name, text(object[keys[i]])];
  }
  return pairs;
}

const illegal = (name) => new TypeError(`Illegal constructor: ${name}`);
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

module.exports = { apply, react, handled, resolved, rejected, attempt, promised, request, deferred, Queue, platformClass, expose, constants, nothing, dictionary, callback, needs, record, illegal, ignore, asyncIterator };
