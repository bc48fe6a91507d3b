const { callback } = require("internal/errors");

class Channel {
  constructor(name) {
    this.name = name;
    this._subscribers = [];
    this._stores = new Map();
  }
  get hasSubscribers() { return this._subscribers.length > 0 || this._stores.size > 0; }
  subscribe(f) {
    callback(f, "subscription");
    this._subscribers = [...this._subscribers, f];
  }
  unsubscribe(f) {
    const at = this._subscribers.indexOf(f);
    if (at >= 0) this._subscribers = this._subscribers.filter((_, i) => i !== at);
    return at >= 0;
  }
  publish(data) {
    for (const f of this._subscribers) {
      try {
        f(data, this.name);
      } catch (error) {
        require("process").nextTick(() => { throw error; });
      }
    }
  }
  bindStore(store, transform) { this._stores.set(store, transform); }
  unbindStore(store) { return this._stores.delete(store); }
  runStores(data, f, self, ...args) {
    let run = () => { this.publish(data); return Reflect.apply(f, self, args); };
    for (const [store, transform] of this._stores) {
      const next = run;
      run = () => store.run(transform ? transform(data) : data, next);
    }
    return run();
  }
}

const channels = new Map();
function channel(name) {
  let c = channels.get(name);
  if (!c) channels.set(name, (c = new Channel(name)));
  return c;
}

const events = ["start", "end", "asyncStart", "asyncEnd", "error"];
class TracingChannel {
  constructor(name) {
    for (const e of events) this[e] = typeof name === "string" ? channel(`tracing:${name}:${e}`) : name[e];
  }
  get hasSubscribers() { return events.some((e) => this[e].hasSubscribers); }
  subscribe(handlers) { for (const e of events) if (handlers[e]) this[e].subscribe(handlers[e]); }
  unsubscribe(handlers) { return events.every((e) => !handlers[e] || this[e].unsubscribe(handlers[e])); }
  traceSync(f, context = {}, self, ...args) {
    return this.start.runStores(context, () => {
      try {
        return (context.result = Reflect.apply(f, self, args));
      } catch (error) {
        context.error = error;
        this.error.publish(context);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }
  tracePromise(f, context = {}, self, ...args) {
    return this.start.runStores(context, () => {
      try {
        return Promise.resolve(Reflect.apply(f, self, args)).then(
          (value) => { context.result = value; this.asyncStart.publish(context); this.asyncEnd.publish(context); return value; },
          (error) => { context.error = error; this.error.publish(context); this.asyncStart.publish(context); this.asyncEnd.publish(context); throw error; });
      } finally {
        this.end.publish(context);
      }
    });
  }
  traceCallback(f, position = -1, context = {}, self, ...args) {
    const at = position < 0 ? args.length + position : position, done = args[at];
    args[at] = (error, value, ...rest) => {
      if (error) { context.error = error; this.error.publish(context); } else { context.result = value; }
      return this.asyncStart.runStores(context, () => {
        try {
          return done(error, value, ...rest);
        } finally {
          this.asyncEnd.publish(context);
        }
      });
    };
    return this.start.runStores(context, () => {
      try {
        return Reflect.apply(f, self, args);
      } finally {
        this.end.publish(context);
      }
    });
  }
}

module.exports = {
  Channel, channel, tracingChannel: (name) => new TracingChannel(name),
  hasSubscribers: (name) => channels.has(name) && channels.get(name).hasSubscribers,
  subscribe: (name, f) => channel(name).subscribe(f), unsubscribe: (name, f) => channel(name).unsubscribe(f),
};
