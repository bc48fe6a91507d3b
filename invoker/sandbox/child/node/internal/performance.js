// Performance (https://w3c.github.io/hr-time/): milliseconds from the start of the activation.
const { expose, illegal } = require("internal/webidl");
const { EventTarget } = require("internal/events");

let making = true;

class Performance extends EventTarget {
  #own = true;
  constructor() {
    if (!making) throw illegal("Performance");
    super();
  }
  now() { return this.#own && natives.now(); }
  get timeOrigin() { return this.#own && natives.origin(); }
  toJSON() { return { timeOrigin: this.timeOrigin }; }
}
expose(Performance);

const performance = new Performance();
making = false;
module.exports = { Performance, performance };
