// The stack as a list of places, which V8 shows to scripts.
class CallSite {
  #frame;
  constructor(frame) { this.#frame = frame; }
  getFunctionName() { return this.#frame[0] || null; }
  getFileName() { return this.#frame[1]; }
  getScriptNameOrSourceURL() { return this.#frame[1]; }
  getLineNumber() { return this.#frame[2]; }
  getColumnNumber() { return this.#frame[3]; }
  getMethodName() { return null; }
  getTypeName() { return null; }
  getThis() { return undefined; }
  getFunction() { return undefined; }
  getEvalOrigin() { return undefined; }
  isNative() { return false; }
  isToplevel() { return true; }
  isConstructor() { return false; }
  isEval() { return false; }
  isAsync() { return false; }
  toString() {
    const place = `${this.#frame[1]}:${this.#frame[2]}:${this.#frame[3]}`;
    return this.#frame[0] ? `${this.#frame[0]} (${place})` : place;
  }
}

const frames = () => natives.frames().filter((f) => f[1] !== "node:internal/callsites");

function captureStackTrace(target, above) {
  let list = frames();
  if (typeof above === "function" && above.name) {
    const at = list.findIndex((f) => f[0] === above.name);
    if (at >= 0) list = list.slice(at + 1);
  }
  list = list.slice(0, Number(Error.stackTraceLimit) >= 0 ? Error.stackTraceLimit : 10).map((f) => new CallSite(f));
  const prepare = Error.prepareStackTrace;
  let stack;
  if (typeof prepare === "function") {
    stack = prepare(target, list);
  } else {
    let head;
    try {
      head = Error.prototype.toString.call(target);
    } catch {
      head = "Error";
    }
    stack = [head, ...list.map((s) => `    at ${s}`)].join("\n");
  }
  Object.defineProperty(target, "stack", { value: stack, writable: true, configurable: true });
}

// install adds V8's captureStackTrace and stackTraceLimit to Error.
function install() {
  if (!("captureStackTrace" in Error)) Object.defineProperty(Error, "captureStackTrace", { value: captureStackTrace, writable: true, configurable: true });
  if (!("stackTraceLimit" in Error)) Error.stackTraceLimit = 10;
}

module.exports = { frames, install };
