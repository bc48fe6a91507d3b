// pump passes the chunks of a stream to write, until the stream ends (then) or one of them
// fails (failed). write returns a promise if the next chunk must wait. pump returns a function
// that cancels the stream.
const { ReadableStreamDefaultReader } = require("internal/webstreams");
const { read, cancel } = ReadableStreamDefaultReader.prototype;

function pump(stream, write, then, failed) {
  const reader = new ReadableStreamDefaultReader(stream);
  const stop = (reason) => { Reflect.apply(cancel, reader, [reason]).catch(() => {}); };
  const run = async () => {
    for (;;) {
      const { value, done } = await Reflect.apply(read, reader, []);
      if (done) return;
      const wait = write(value);
      if (wait) await wait;
    }
  };
  run().then(then, (e) => { stop(e); failed(e); });
  return stop;
}

module.exports = { pump };
