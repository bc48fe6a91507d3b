const timers = require("timers");
const { AbortError } = require("internal/errors");
const asyncIterator = Symbol.asyncIterator || Symbol.for("Symbol.asyncIterator");

// wait starts a timer that resolves a promise, unless the signal aborts before.
function wait(start, value, options) {
  const signal = options && options.signal;
  return new Promise((resolve, reject) => {
    if (signal && signal.aborted) return reject(new AbortError(undefined, { cause: signal.reason }));
    const aborted = () => {
      timer.close();
      reject(new AbortError(undefined, { cause: signal.reason }));
    };
    const timer = start(() => {
      if (signal) signal.removeEventListener("abort", aborted);
      resolve(value);
    });
    if (signal) signal.addEventListener("abort", aborted, { once: true });
    return undefined;
  });
}

const setTimeout = (ms, value, options) => wait((f) => timers.setTimeout(f, ms), value, options);
const setImmediate = (value, options) => wait((f) => timers.setImmediate(f), value, options);

function setInterval(ms, value, options) {
  let due = Date.now(), ended = false;
  return {
    next() {
      if (ended) return Promise.resolve({ value: undefined, done: true });
      due += ms;
      return setTimeout(Math.max(0, due - Date.now()), undefined, options).then(() => ({ value, done: false }));
    },
    return() { ended = true; return Promise.resolve({ value: undefined, done: true }); },
    [asyncIterator]() { return this; },
  };
}

module.exports = { setTimeout, setImmediate, setInterval, scheduler: { wait: (ms, options) => setTimeout(ms, undefined, options), yield: () => setImmediate() } };
