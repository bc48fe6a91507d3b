// ReadableStreamPipeTo (https://streams.spec.whatwg.org/#readable-stream-pipe-to).
const { react, resolved, request, dictionary } = require("internal/webidl");
const streams = require("internal/readables");
const writable = require("internal/writable");
const { aborted: isAborted, reason: reasonOf, onAbort, isSignal } = require("internal/signals");

function pipeOptions(value) {
  const { preventAbort, preventCancel, preventClose, signal } = dictionary(value, "The options");
  if (signal !== undefined && !isSignal(signal)) throw new TypeError("The option signal must be an AbortSignal");
  return { preventAbort: !!preventAbort, preventCancel: !!preventCancel, preventClose: !!preventClose, signal };
}

// pipe moves the chunks of a readable stream into a writable one, as fast as that takes them.
function pipe(source, dest, options) {
  const p = { source, dest, options, reader: streams.acquire(source, "default"), writer: writable.acquire(dest), done: request(), over: false, lastWrite: resolved(undefined), forget: undefined };
  source.disturbed = true;
  if (options.signal) {
    const stop = () => abort(p, reasonOf(options.signal));
    if (isAborted(options.signal)) {
      stop();
      return p.done.promise;
    }
    p.forget = onAbort(options.signal, stop);
  }
  follow(p);
  step(p);
  return p.done.promise;
}

function abort(p, reason) {
  const { source, dest, options } = p, actions = [];
  if (!options.preventAbort && dest.state === "writable") actions.push(() => writable.abort(dest, reason));
  if (!options.preventCancel && source.state === "readable") actions.push(() => streams.cancel(source, reason));
  shutdown(p, () => Promise.all(actions.map((f) => f())), { reason });
}

// follow ends the pipe when one of its ends closes or errors. An end that has done so already
// is seen first, in the order of the specification.
function follow(p) {
  const { source, dest, options } = p;
  const sourceFailed = (e) => (options.preventAbort ? shutdown(p, undefined, { reason: e }) : shutdown(p, () => writable.abort(dest, e), { reason: e }));
  const destFailed = (e) => (options.preventCancel ? shutdown(p, undefined, { reason: e }) : shutdown(p, () => streams.cancel(source, e), { reason: e }));
  const sourceClosed = () => (options.preventClose ? shutdown(p) : shutdown(p, () => writable.closeOrFollow(p.writer)));
  if (source.state === "errored") sourceFailed(source.stored);
  else react(p.reader.closed.promise, undefined, sourceFailed);
  if (dest.state === "errored") destFailed(dest.stored);
  else react(p.writer.closed.promise, undefined, destFailed);
  if (source.state === "closed") sourceClosed();
  else react(p.reader.closed.promise, sourceClosed, () => {});
  if (writable.closes(dest) || dest.state === "closed") destFailed(new TypeError("The destination is closing or closed"));
}

function step(p) {
  if (p.over) return;
  react(p.writer.ready.promise, () => {
    if (p.over) return;
    streams.read(p.reader, {
      chunk: (chunk) => {
        p.lastWrite = writable.write(p.writer, chunk);
        react(p.lastWrite, undefined, () => {});
        step(p);
      },
      close() {},
      error() {},
    });
  }, () => {}); // a destination that failed ends the pipe by its promise closed
}

// shutdown waits for the writes that have begun, runs an action and ends the pipe; failure is
// {reason}, undefined for a pipe that succeeded.
function shutdown(p, action, failure) {
  if (p.over) return;
  p.over = true;
  const end = () => {
    if (!action) {
      finish(p, failure);
      return;
    }
    react(action(), () => finish(p, failure), (e) => finish(p, { reason: e }));
  };
  if (p.dest.state === "writable" && !writable.closes(p.dest)) waitForWrites(p, end);
  else end();
}

function waitForWrites(p, then) {
  const last = p.lastWrite, again = () => (p.lastWrite === last ? then() : waitForWrites(p, then));
  react(last, again, again);
}

function finish(p, failure) {
  writable.release(p.writer);
  streams.release(p.reader);
  if (p.forget) p.forget();
  if (failure) p.done.reject(failure.reason);
  else p.done.resolve();
}

module.exports = { pipe, pipeOptions, writableState: writable.stateOf };
