// Signals, used without members that a script can replace.
const { apply } = Reflect, { prototype } = AbortSignal;
const get = Object.getOwnPropertyDescriptor(prototype, "aborted").get;

const aborted = (signal) => apply(get, signal, []);

function isSignal(v) {
  try {
    aborted(v);
    return true;
  } catch {
    return false;
  }
}

// onAbort calls f when a signal aborts, and returns a function that forgets f.
function onAbort(signal, f) {
  apply(prototype.addEventListener, signal, ["abort", f, { once: true }]);
  return () => apply(prototype.removeEventListener, signal, ["abort", f]);
}

module.exports = { aborted, isSignal, onAbort };
