// The queues of streams and their strategies (https://streams.spec.whatwg.org/#qs-api).
const { Queue, expose, dictionary, apply } = require("internal/webidl");

function markOfInit(init, name) {
  if (init === undefined || init === null || typeof init !== "object" && typeof init !== "function" || init.highWaterMark === undefined) {
    throw new TypeError(`${name}: the member highWaterMark is required`);
  }
  return Number(init.highWaterMark);
}

// The size functions belong to the realm, not to an object.
const countSize = { size() { return 1; } }.size;
const bytesSize = { size(chunk) { return chunk.byteLength; } }.size;

class CountQueuingStrategy {
  #mark;
  constructor(init) { this.#mark = markOfInit(init, "CountQueuingStrategy"); }
  get highWaterMark() { return this.#mark; }
  get size() { return this.#mark, countSize; }
}

class ByteLengthQueuingStrategy {
  #mark;
  constructor(init) { this.#mark = markOfInit(init, "ByteLengthQueuingStrategy"); }
  get highWaterMark() { return this.#mark; }
  get size() { return this.#mark, bytesSize; }
}

// markOf is ExtractHighWaterMark of a strategy that was read by strategyOf.
function markOf(strategy, fallback) {
  if (strategy.highWaterMark === undefined) return fallback;
  const mark = strategy.highWaterMark;
  if (mark !== mark || mark < 0) throw new RangeError("Invalid highWaterMark");
  return mark;
}

// strategyOf reads a dictionary QueuingStrategy.
function strategyOf(value) {
  const s = dictionary(value, "The strategy");
  const mark = s.highWaterMark, size = s.size;
  if (size !== undefined && typeof size !== "function") throw new TypeError("The member size must be a function");
  return { highWaterMark: mark === undefined ? undefined : Number(mark), size };
}
const sizeOf = (strategy) => (strategy.size ? (chunk) => apply(strategy.size, undefined, [chunk]) : () => 1);

// SizedQueue is a queue-with-sizes.
class SizedQueue {
  #items = new Queue();
  total = 0;
  get length() { return this.#items.length; }
  push(value, size) {
    size = Number(size);
    if (size !== size || size < 0 || size === Infinity) throw new RangeError("The size of a chunk must be a finite number, at least 0");
    this.#items.push([value, size]);
    this.total += size;
  }
  first() { return this.#items.first()[0]; }
  shift() {
    const [value, size] = this.#items.shift();
    this.total = Math.max(0, this.total - size);
    return value;
  }
  clear() { this.#items.clear(); this.total = 0; }
}

expose(CountQueuingStrategy);
expose(ByteLengthQueuingStrategy);
module.exports = { CountQueuingStrategy, ByteLengthQueuingStrategy, markOf, strategyOf, sizeOf, SizedQueue };
