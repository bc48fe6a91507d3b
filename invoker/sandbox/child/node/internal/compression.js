// CompressionStream and DecompressionStream (https://compression.spec.whatwg.org).
const { expose, attempt, react, needs, resolved } = require("internal/webidl");
const transform = require("internal/transform");
const { bytesOf, viewOf } = require("internal/views");

const formats = ["deflate", "deflate-raw", "gzip"];
const part = natives.part();

function formatOf(value, what) {
  const format = `${value}`;
  if (!formats.includes(format)) throw new TypeError(`${what}: ${JSON.stringify(format)} is no format; it must be "deflate", "deflate-raw" or "gzip"`);
  return format;
}

function bytesOfChunk(chunk) {
  const bytes = bytesOf(chunk);
  if (bytes === undefined) throw new TypeError("A chunk must be a buffer or a view of one");
  return bytes;
}

function put(t, buffer) {
  if (buffer.byteLength > 0) transform.enqueue(t, new Uint8Array(buffer));
}

// repeat calls step until it returns true. While the reader takes nothing it waits, so that a
// short input with a long output needs no memory for it.
function repeat(t, step) {
  for (;;) {
    if (step()) return resolved(undefined);
    const room = transform.room(t);
    if (room) return react(room, () => (t.readable.state === "readable" ? repeat(t, step) : undefined));
  }
}

class CompressionStream {
  #t;
  constructor(format) {
    needs(arguments.length, 1, "CompressionStream");
    const codec = natives.deflater(formatOf(format, "CompressionStream"), -1);
    this.#t = transform.create({
      transform: (chunk) => attempt(() => {
        const bytes = bytesOfChunk(chunk), size = viewOf(bytes).byteLength;
        if (size === 0) return undefined;
        // The rest of a long chunk may have to wait, and the script may change it meanwhile.
        const whole = size > part ? new Uint8Array(bytes) : bytes;
        let from = 0;
        return repeat(this.#t, () => {
          put(this.#t, natives.deflate(codec, whole, from));
          from += part;
          return from >= size;
        });
      }),
      flush: () => attempt(() => put(this.#t, natives.deflate(codec))),
    });
  }
  get readable() { return this.#t.readable.object; }
  get writable() { return this.#t.writable.object; }
}
expose(CompressionStream);

class DecompressionStream {
  #t;
  constructor(format) {
    needs(arguments.length, 1, "DecompressionStream");
    const codec = natives.inflater(formatOf(format, "DecompressionStream"));
    let ended = false;
    // next makes one part and reports whether the input is used up.
    const next = () => {
      let made;
      try {
        made = natives.inflate(codec, part);
      } catch (e) {
        throw new TypeError(`The compressed data is not valid: ${e.message}`, { cause: e });
      }
      if (made === undefined) return true;
      if (typeof made !== "number") {
        put(this.#t, made);
        return false;
      }
      ended = true;
      if (made > 0) throw new TypeError("There is data behind the end of the compressed data");
      return true;
    };
    this.#t = transform.create({
      transform: (chunk) => attempt(() => {
        const bytes = bytesOfChunk(chunk);
        if (viewOf(bytes).byteLength === 0) return undefined;
        if (ended) throw new TypeError("There is data behind the end of the compressed data");
        natives.feed(codec, bytes);
        return repeat(this.#t, next);
      }),
      flush: () => attempt(() => { if (!ended) throw new TypeError("The compressed data ends too early"); }),
    });
  }
  get readable() { return this.#t.readable.object; }
  get writable() { return this.#t.writable.object; }
}
expose(DecompressionStream);

module.exports = { CompressionStream, DecompressionStream };
