// ReadableStreamTee (https://streams.spec.whatwg.org/#abstract-opdef-readablestreamtee).
const { deferred, nothing, react, resolved } = require("internal/webidl");
const streams = require("internal/readables");
const defaults = require("internal/readabledefault");
const bytes = require("internal/readablebytes");
const { create, pullInto } = require("internal/readable");
const { viewOf, clone: structured } = require("internal/views");

const soon = (f) => { react(resolved(undefined), f); };

// tee returns two streams that have the chunks of one. A byte stream copies them, because
// its chunks are transferred; others share them, unless the second is to have structured clones.
function tee(s, clones) {
  const t = { source: s, clones, reader: streams.acquire(s, "default"), reading: false, again: [false, false], gone: [false, false], reasons: [undefined, undefined], cancelled: deferred(), branches: [] };
  const cancel = (i) => (reason) => {
    t.gone[i] = true;
    t.reasons[i] = reason;
    if (t.gone[1 - i]) t.cancelled.resolve(streams.cancel(s, t.reasons));
    return t.cancelled.promise;
  };
  const asBytes = !!s.controller.bytes;
  for (const i of [0, 1]) {
    t.branches.push(create({
      pull: asBytes ? () => pullBytes(t, i) : () => pullChunk(t),
      cancel: cancel(i),
    }, asBytes ? { mark: 0, bytes: true } : nothing));
  }
  watch(t, asBytes ? bytes : defaults);
  return t.branches;
}

const both = (t, f) => { for (const i of [0, 1]) f(t.branches[i].controller, i); };

// watch errors the branches when the stream errors that the present reader reads.
function watch(t, controllers) {
  const { reader } = t;
  react(reader.closed.promise, undefined, (e) => {
    if (t.reader !== reader) return;
    both(t, (c) => controllers.fail(c, e));
    if (!t.gone[0] || !t.gone[1]) t.cancelled.resolve();
  });
}

function pullChunk(t) {
  if (t.reading) {
    t.again[0] = true;
    return resolved(undefined);
  }
  t.reading = true;
  streams.read(t.reader, {
    chunk: (chunk) => soon(() => {
      t.again[0] = false;
      let second = chunk;
      if (t.clones && !t.gone[1]) {
        second = copied(t, chunk, structured, defaults);
        if (second === failure) return;
      }
      if (!t.gone[0]) defaults.enqueue(t.branches[0].controller, chunk);
      if (!t.gone[1]) defaults.enqueue(t.branches[1].controller, second);
      t.reading = false;
      if (t.again[0]) pullChunk(t);
    }),
    close: () => {
      t.reading = false;
      both(t, (c, i) => { if (!t.gone[i]) defaults.close(c); });
      if (!t.gone[0] || !t.gone[1]) t.cancelled.resolve();
    },
    error: () => { t.reading = false; },
  });
  return resolved(undefined);
}

function switchReader(t, kind) {
  if (t.reader.kind === kind) return;
  const before = t.reader;
  t.reader = undefined; // its release is no error of the stream
  streams.release(before);
  t.reader = streams.acquire(t.source, kind);
  watch(t, bytes);
}

const clone = (chunk) => {
  const { buffer, byteOffset, byteLength } = viewOf(chunk);
  return viewOf(new Uint8Array(new Uint8Array(buffer, byteOffset, byteLength)));
};

function pullBytes(t, i) {
  if (t.reading) {
    t.again[i] = true;
    return resolved(undefined);
  }
  t.reading = true;
  const request = bytes.requestOf(t.branches[i].controller);
  if (request) pullWithView(t, i, request.view);
  else pullWithReader(t);
  return resolved(undefined);
}

function goOn(t) {
  t.reading = false;
  if (t.again[0]) pullBytes(t, 0);
  else if (t.again[1]) pullBytes(t, 1);
}

// copied clones a chunk for the second branch; where that fails it ends everything.
function copied(t, chunk, copy, controllers) {
  try {
    return copy(chunk);
  } catch (e) {
    both(t, (c) => controllers.fail(c, e));
    t.cancelled.resolve(streams.cancel(t.source, e));
    return failure;
  }
}

const failure = Symbol("failure");

function pullWithReader(t) {
  switchReader(t, "default");
  streams.read(t.reader, {
    chunk: (chunk) => soon(() => {
      t.again = [false, false];
      let second = chunk;
      if (!t.gone[0] && !t.gone[1]) {
        second = copied(t, chunk, clone, bytes);
        if (second === failure) return;
      } else {
        second = viewOf(chunk);
      }
      if (!t.gone[0]) bytes.enqueue(t.branches[0].controller, viewOf(chunk));
      if (!t.gone[1]) bytes.enqueue(t.branches[1].controller, second);
      goOn(t);
    }),
    close: () => {
      t.reading = false;
      both(t, (c, i) => { if (!t.gone[i]) bytes.close(c); });
      both(t, (c) => { if (c.pending.length > 0) bytes.respond(c, 0); });
      if (!t.gone[0] || !t.gone[1]) t.cancelled.resolve();
    },
    error: () => { t.reading = false; },
  });
}

// pullWithView reads into the view of one branch's reader; the other one gets a copy.
function pullWithView(t, i, view) {
  switchReader(t, "byob");
  const mine = () => t.branches[i].controller, other = () => t.branches[1 - i].controller;
  pullInto(t.reader, viewOf(view), 1, {
    chunk: (chunk) => soon(() => {
      t.again = [false, false];
      if (!t.gone[1 - i]) {
        const copy = copied(t, chunk, clone, bytes);
        if (copy === failure) return;
        if (!t.gone[i]) bytes.respondWithView(mine(), viewOf(chunk));
        bytes.enqueue(other(), copy);
      } else if (!t.gone[i]) {
        bytes.respondWithView(mine(), viewOf(chunk));
      }
      goOn(t);
    }),
    close: (chunk) => {
      t.reading = false;
      both(t, (c, n) => { if (!t.gone[n]) bytes.close(c); });
      if (chunk !== undefined) {
        if (!t.gone[i]) bytes.respondWithView(mine(), viewOf(chunk));
        if (!t.gone[1 - i] && other().pending.length > 0) bytes.respond(other(), 0);
      }
      if (!t.gone[0] || !t.gone[1]) t.cancelled.resolve();
    },
    error: () => { t.reading = false; },
  });
}

module.exports = { tee };
