// TextEncoderStream and TextDecoderStream (https://encoding.spec.whatwg.org/#interface-textencoderstream).
const { expose, attempt, apply } = require("internal/webidl");
const transform = require("internal/transform");
const { bytesOf } = require("internal/views");
const { decode } = TextDecoder.prototype, { encode } = TextEncoder.prototype;

class TextEncoderStream {
  #t;
  constructor() {
    const encoder = new TextEncoder();
    let high = ""; // a leading surrogate that waits for its other half
    this.#t = transform.create({
      transform: (chunk) => attempt(() => {
        let text = high + `${chunk}`;
        high = "";
        const last = text.charCodeAt(text.length - 1);
        if (last >= 0xd800 && last <= 0xdbff) {
          high = text[text.length - 1];
          text = text.slice(0, -1);
        }
        if (text !== "") transform.enqueue(this.#t, apply(encode, encoder, [text]));
      }),
      flush: () => attempt(() => { if (high !== "") transform.enqueue(this.#t, new Uint8Array([0xef, 0xbf, 0xbd])); }),
    });
  }
  get encoding() { return this.#t, "utf-8"; }
  get readable() { return this.#t.readable.object; }
  get writable() { return this.#t.writable.object; }
}
expose(TextEncoderStream);

class TextDecoderStream {
  #t;
  #decoder;
  constructor(label = undefined, options = undefined) {
    const decoder = this.#decoder = new TextDecoder(label, options);
    const put = (text) => { if (text !== "") transform.enqueue(this.#t, text); };
    this.#t = transform.create({
      transform: (chunk) => attempt(() => {
        if (bytesOf(chunk) === undefined) throw new TypeError("A chunk must be a buffer or a view of one");
        put(apply(decode, decoder, [chunk, { stream: true }]));
      }),
      flush: () => attempt(() => put(apply(decode, decoder, []))),
    });
  }
  get encoding() { return this.#decoder.encoding; }
  get fatal() { return this.#decoder.fatal; }
  get ignoreBOM() { return this.#decoder.ignoreBOM; }
  get readable() { return this.#t.readable.object; }
  get writable() { return this.#t.writable.object; }
}
expose(TextDecoderStream);

module.exports = { TextEncoderStream, TextDecoderStream };
