// The state of readable streams and of their readers (https://streams.spec.whatwg.org/#rs-abstract-ops).
// The classes are in internal/readable and show objects of this module; none of its
// algorithms reads a member that a script can replace.
const { deferred, request: newRequest, react, resolved, rejected, Queue, handled } = require("internal/webidl");

const newReadable = () => ({ kind: "readable", state: "readable", reader: undefined, stored: undefined, disturbed: false, controller: undefined, object: undefined, ended: undefined });

// drain takes the requests of a reader and calls f with each.
function drain(reader, f) {
  const { requests } = reader;
  reader.requests = new Queue();
  while (requests.length > 0) f(requests.shift());
}

// ended returns a promise that settles when a stream is closed or errored.
function ended(s) {
  if (!s.ended) {
    s.ended = deferred();
    if (s.state === "closed") s.ended.resolve();
    else if (s.state === "errored") s.ended.reject(s.stored);
  }
  return s.ended.promise;
}

function close(s) {
  s.state = "closed";
  if (s.ended) s.ended.resolve();
  const { reader } = s;
  if (!reader) return;
  reader.closed.resolve();
  if (reader.kind === "default") drain(reader, (q) => q.close());
}

function fail(s, reason) {
  s.state = "errored";
  s.stored = reason;
  if (s.ended) s.ended.reject(reason);
  const { reader } = s;
  if (!reader) return;
  reader.closed.reject(reason);
  drain(reader, (q) => q.error(reason));
}

function cancel(s, reason) {
  s.disturbed = true;
  if (s.state === "closed") return resolved(undefined);
  if (s.state === "errored") return rejected(s.stored);
  close(s);
  if (s.reader && s.reader.kind === "byob") drain(s.reader, (q) => q.close(undefined));
  return react(s.controller.cancelSteps(reason), () => undefined);
}

// waiting is the number of requests of the reader of that kind.
const waiting = (s, kind) => (s.reader && s.reader.kind === kind ? s.reader.requests.length : 0);

function fulfill(s, chunk, done) {
  const q = s.reader.requests.shift();
  if (done) q.close(chunk);
  else q.chunk(chunk);
}

// acquire makes a reader of a stream and locks it. kind is default or byob.
function acquire(s, kind) {
  if (s.reader) throw new TypeError("The stream is locked to a reader");
  const r = { kind, stream: s, requests: new Queue(), closed: deferred() };
  s.reader = r;
  if (s.state === "closed") r.closed.resolve();
  else if (s.state === "errored") r.closed.reject(s.stored);
  return r;
}

function release(r) {
  const s = r.stream;
  if (!s) return;
  const e = new TypeError("The reader was released");
  if (!r.closed.pending) r.closed = deferred();
  r.closed.reject(e);
  s.controller.releaseSteps();
  s.reader = undefined;
  r.stream = undefined;
  drain(r, (q) => q.error(e));
}

// read asks for the next chunk: one of the functions chunk, close and error of the request
// is called.
function read(r, request) {
  const s = r.stream;
  s.disturbed = true;
  if (s.state === "closed") request.close();
  else if (s.state === "errored") request.error(s.stored);
  else s.controller.pullSteps(request);
}

// next is read as a promise of {value, done}.
function next(r) {
  const d = newRequest();
  read(r, {
    chunk: (value) => d.resolve({ value, done: false }),
    close: () => d.resolve({ value: undefined, done: true }),
    error: (e) => d.reject(e),
  });
  return d.promise;
}

// begin runs the start algorithm of a controller and calls ready or failed when it is done.
function begin(start, ready, failed) {
  const started = start(); // an exception is the constructor's
  handled(react(resolved(started), ready, failed));
}

module.exports = { newReadable, ended, close, fail, cancel, waiting, fulfill, acquire, release, read, next, begin };
