// Signals, used without members that a script can replace.
const { isSignal, aborted, reason, onAbort } = natives;

module.exports = { isSignal, aborted, reason, onAbort };
