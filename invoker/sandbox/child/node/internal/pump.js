// pump passes the chunks of a stream to write, until the stream ends (then) or one of them
// fails (failed). write returns a promise if the next chunk must wait. pump returns a function
// that cancels the stream.
const { handled, resolved, react } = require("internal/webidl");
const { stateOf } = require("internal/readable");
const { acquire, next, cancel } = require("internal/readables");

function pump(stream, write, then, failed) {
  const s = stateOf(stream), reader = acquire(s, "default");
  const stop = (reason) => { handled(cancel(s, reason)); };
  const step = (r) => {
    if (r.done) return then();
    return react(resolved(write(r.value)), read);
  };
  const read = () => react(next(reader), step);
  react(read(), undefined, (e) => { stop(e); failed(e); });
  return stop;
}

module.exports = { pump };
