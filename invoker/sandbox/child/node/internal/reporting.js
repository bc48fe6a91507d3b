// ErrorEvent, PromiseRejectionEvent and what reports errors and rejections to the global
// object (https://html.spec.whatwg.org/#runtime-script-errors, #unhandled-promise-rejections).
const { expose, dictionary, needs, resolved } = require("internal/webidl");
const { Event, fire, listens, setHandler, handlerOf } = require("internal/events");

let isErrorEvent;

class ErrorEvent extends Event {
  #m;
  static { isErrorEvent = (o) => #m in o; }
  constructor(type, options = undefined) {
    needs(arguments.length, 1, "ErrorEvent");
    super(type, options);
    const { colno, error, filename, lineno, message } = dictionary(options, "The options");
    this.#m = { message: message === undefined ? "" : `${message}`, filename: filename === undefined ? "" : `${filename}`, lineno: lineno >>> 0, colno: colno >>> 0, error };
  }
  get message() { return this.#m.message; }
  get filename() { return this.#m.filename; }
  get lineno() { return this.#m.lineno; }
  get colno() { return this.#m.colno; }
  get error() { return this.#m.error; }
}
expose(ErrorEvent);

class PromiseRejectionEvent extends Event {
  #m;
  constructor(type, options) {
    needs(arguments.length, 2, "PromiseRejectionEvent");
    super(type, options);
    const { promise, reason } = dictionary(options, "The options");
    if (promise === undefined) throw new TypeError("PromiseRejectionEvent: the option promise is required");
    this.#m = { promise: promise !== null && typeof promise === "object" ? promise : resolved(promise), reason };
  }
  get promise() { return this.#m.promise; }
  get reason() { return this.#m.reason; }
}
expose(PromiseRejectionEvent);

// sync follows the handler that is a property of the global object.
function sync(type) {
  let f;
  try {
    f = globalThis["on" + type];
  } catch { /* a getter of the script */ }
  const handler = typeof f === "function" ? f : null;
  if (handlerOf(globalThis, type) !== handler) setHandler(globalThis, type, handler);
  return listens(globalThis, type);
}

let reporting = false;

// tell fires the event error for an exception, and reports whether a listener prevented what
// the platform does with it. An exception of such a listener has no event.
function tell(error) {
  if (reporting || !sync("error")) return false;
  reporting = true;
  try {
    return !fire(globalThis, new ErrorEvent("error", { ...natives.describe(error), error, cancelable: true }));
  } finally {
    reporting = false;
  }
}

// report is "report an exception": without a listener that prevents it, it is logged.
function report(error) { if (!tell(error)) natives.log(error); }

// rejected fires the event of a rejection, and reports whether a listener prevented what the
// platform does with it.
function rejected(type, promise, reason) {
  return sync(type) && !fire(globalThis, new PromiseRejectionEvent(type, { promise, reason, cancelable: type === "unhandledrejection" }));
}

module.exports = { ErrorEvent, PromiseRejectionEvent, isErrorEvent, report, tell, rejected };
