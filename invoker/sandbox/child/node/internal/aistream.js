// The streamed answers of cs.ai: server-sent events of the host, of which each is a delta.
const { react, resolved, attempt, asyncIterator } = require("internal/webidl");
const { stateOf } = require("internal/readable");
const streams = require("internal/readables");
const { Buffer } = require("internal/bytes");
const { parse } = JSON;



class ModelStream {
  #stream;
  #reader;
  #held = Buffer.alloc(0);
  #deltas = [];
  #ended = false;
  #last = resolved(undefined);
  constructor(stream) { this.#stream = stream; }

  // next returns the next delta. Calls that come before the previous one has ended wait for it.
  next() {
    const turn = () => this.#next();
    return (this.#last = react(this.#last, turn, turn));
  }

  // return ends the request.
  return(value = undefined) {
    if (this.#ended && !this.#reader) return resolved({ value, done: true });
    this.#ended = true;
    this.#deltas = [];
    const s = stateOf(this.#stream);
    return react(attempt(() => streams.cancel(s, undefined)), () => ({ value, done: true }));
  }

  [asyncIterator]() { return this; }

  // final reads the answer to its end, and returns it as cs.ai.chat does.
  async final() {
    const out = { text: "", tool_calls: [], message: undefined, finish_reason: "", provider: "", model: "", usage: undefined };
    for (let step = await this.next(); !step.done; step = await this.next()) {
      const d = step.value;
      if (d.type === "text") out.text += d.text;
      if (d.type === "tool_call") {
        const at = d.index ?? 0, call = (out.tool_calls[at] ??= { id: "", name: "", arguments: "" });
        if (d.id) call.id = d.id;
        if (d.name) call.name = d.name;
        call.arguments += d.arguments ?? "";
      }
      if (d.type === "end") {
        out.finish_reason = d.finish_reason ?? "";
        out.provider = d.provider;
        out.model = d.model;
        out.usage = d.usage;
      }
    }
    out.message = { role: "assistant", content: out.text, tool_calls: out.tool_calls };
    return out;
  }

  // toReadableStream returns the deltas as the bytes of server-sent events.
  toReadableStream() {
    if (this.#reader) throw new TypeError("The stream of the model is being read");
    return this.#stream;
  }

  // toResponse returns an answer that passes the deltas on as server-sent events.
  toResponse(init = undefined) {
    const response = new Response(this.toReadableStream(), init);
    if (!response.headers.has("content-type")) response.headers.set("content-type", "text/event-stream");
    if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
    return response;
  }

  #next() {
    if (this.#deltas.length > 0) {
      const value = this.#deltas.shift();
      if (value.type !== "error") return { value, done: false };
      this.#ended = true;
      const e = new Error(value.message);
      Object.defineProperty(e, "code", { value: value.code, writable: true, enumerable: true, configurable: true });
      throw e;
    }
    if (this.#ended) return { value: undefined, done: true };
    this.#reader ??= streams.acquire(stateOf(this.#stream), "default");
    return react(streams.next(this.#reader), ({ done, value }) => {
      if (done) this.#ended = true;
      else this.#take(value);
      return this.#next();
    });
  }

  // #take reads the events that are whole.
  #take(bytes) {
    let held = this.#held.length > 0 ? Buffer.concat([this.#held, bytes]) : Buffer.from(bytes);
    for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
      this.#deltas[this.#deltas.length] = parse(held.toString("utf8", "data: ".length, end));
      held = held.subarray(end + 2);
    }
    this.#held = Buffer.from(held);
  }
}

module.exports = { make: (stream) => new ModelStream(stream) };
