// PerformanceEntry, PerformanceMark and PerformanceMeasure (https://w3c.github.io/user-timing/,
// https://w3c.github.io/performance-timeline/), and the entries of the activation that runs.
const { expose, dictionary, needs, illegal } = require("internal/webidl");

const maxEntries = 10000; // that an activation keeps; later ones are dropped

let making, stateOf;

class PerformanceEntry {
  #e;
  static { stateOf = (o) => o.#e; }
  constructor() {
    if (!making) throw illegal("PerformanceEntry");
    this.#e = making;
    making = undefined;
  }
  get name() { return this.#e.name; }
  get entryType() { return this.#e.type; }
  get startTime() { return this.#e.start; }
  get duration() { return this.#e.duration; }
  toJSON() {
    const { name, type, start, duration, detail } = this.#e;
    return { name, entryType: type, startTime: start, duration, detail };
  }
}
expose(PerformanceEntry);

class PerformanceMark extends PerformanceEntry {
  #m;
  constructor(name, options = undefined) {
    needs(arguments.length, 1, "PerformanceMark");
    name = `${name}`;
    const { detail, startTime } = dictionary(options, "The options");
    const start = startTime === undefined ? natives.now() : timeOf(startTime);
    making = { name, type: "mark", start, duration: 0, detail: copyOf(detail) };
    super();
    this.#m = stateOf(this);
  }
  get detail() { return this.#m.detail; }
}
expose(PerformanceMark);

class PerformanceMeasure extends PerformanceEntry {
  #m;
  constructor() {
    if (!making) throw illegal("PerformanceMeasure");
    super();
    this.#m = stateOf(this);
  }
  get detail() { return this.#m.detail; }
}
expose(PerformanceMeasure);

// copyOf is the detail of an entry: a clone, null for none.
const copyOf = (detail) => (detail === undefined || detail === null ? null : natives.clone(detail));

// timeOf converts a DOMHighResTimeStamp.
function timeOf(value) {
  const time = Number(value);
  if (!Number.isFinite(time)) throw new TypeError("A time must be a finite number");
  if (time < 0) throw new TypeError("A time must not be negative");
  return time;
}

// An instance serves many activations: none sees the entries of another.
let entries = [], owner;

function own() {
  const activation = natives.activation();
  if (owner !== activation) {
    owner = activation;
    entries = [];
  }
  return entries;
}

function keep(entry) {
  const all = own();
  if (all.length < maxEntries) all[all.length] = entry;
  return entry;
}

const mark = (name, options) => keep(new PerformanceMark(name, options));

// at converts a mark to a time: that of the last mark of that name, or the time itself.
function at(value) {
  if (typeof value === "number") return timeOf(value);
  const name = `${value}`, all = own();
  for (let i = all.length - 1; i >= 0; i--) {
    const e = stateOf(all[i]);
    if (e.type === "mark" && e.name === name) return e.start;
  }
  throw new DOMException(`The mark ${JSON.stringify(name)} does not exist`, "SyntaxError");
}

// measure is (name, start or options, end).
function measure(name, from, to) {
  name = `${name}`;
  const given = from !== null && (typeof from === "object" || typeof from === "function");
  const { detail, duration, end, start } = given ? from : { start: from === undefined || from === null ? undefined : `${from}` };
  if (given && (detail !== undefined || duration !== undefined || end !== undefined || start !== undefined)) {
    if (to !== undefined) throw new TypeError("measure: an end must not be given beside options");
    if (start === undefined && end === undefined) throw new TypeError("measure: the options need start or end");
    if (start !== undefined && end !== undefined && duration !== undefined) throw new TypeError("measure: the options must not have start, end and duration");
  }
  const length = duration === undefined ? undefined : timeOf(duration);
  let last;
  if (to !== undefined) last = at(`${to}`);
  else if (end !== undefined) last = at(end);
  else last = start !== undefined && length !== undefined ? at(start) + length : natives.now();
  let first = 0;
  if (start !== undefined) first = at(start);
  else if (length !== undefined) first = last - length;
  making = { name, type: "measure", start: first, duration: last - first, detail: copyOf(detail) };
  return keep(new PerformanceMeasure());
}

// clear forgets the entries of a type with a name, or all of the type.
function clear(type, name) {
  const kept = [], all = own();
  for (let i = 0; i < all.length; i++) {
    const e = stateOf(all[i]);
    if (e.type !== type || name !== undefined && e.name !== name) kept[kept.length] = all[i];
  }
  entries = kept;
}

// list returns entries in the order of their times, then of their making.
function list(name, type) {
  const found = [], all = own();
  for (let i = 0; i < all.length; i++) {
    const e = stateOf(all[i]);
    if ((name === undefined || e.name === name) && (type === undefined || e.type === type)) found[found.length] = all[i];
  }
  return found.sort((a, b) => stateOf(a).start - stateOf(b).start);
}

module.exports = { PerformanceEntry, PerformanceMark, PerformanceMeasure, mark, measure, clear, list };
