// Performance (https://w3c.github.io/hr-time/): milliseconds from the start of the activation.
const { expose, illegal, needs } = require("internal/webidl");
const { EventTarget } = require("internal/events");

const timeline = () => require("internal/timeline"); // when a script first uses it
const text = (v) => (v === undefined ? undefined : `${v}`);

let making = true;

class Performance extends EventTarget {
  #own = true;
  constructor() {
    if (!making) throw illegal("Performance");
    super();
  }
  now() { return this.#own && natives.now(); }
  get timeOrigin() { return this.#own && natives.origin(); }
  toJSON() { this.#own; return { timeOrigin: this.timeOrigin }; }
  mark(name, options = undefined) {
    this.#own;
    needs(arguments.length, 1, "mark");
    return timeline().mark(name, options);
  }
  measure(name, start = undefined, end = undefined) {
    this.#own;
    needs(arguments.length, 1, "measure");
    return timeline().measure(name, start, end);
  }
  clearMarks(name = undefined) { this.#own && timeline().clear("mark", text(name)); }
  clearMeasures(name = undefined) { this.#own && timeline().clear("measure", text(name)); }
  getEntries() { return this.#own && timeline().list(); }
  getEntriesByType(type) {
    this.#own;
    needs(arguments.length, 1, "getEntriesByType");
    return timeline().list(undefined, `${type}`);
  }
  getEntriesByName(name, type = undefined) {
    this.#own;
    needs(arguments.length, 1, "getEntriesByName");
    return timeline().list(`${name}`, text(type));
  }
}
expose(Performance);

const performance = new Performance();
making = false;
module.exports = { Performance, performance };
