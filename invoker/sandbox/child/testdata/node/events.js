import { check, throws, rejects } from "./check.js";
import EventEmitter, { once, on, EventEmitter as Named, errorMonitor } from "node:events";
import * as all from "events";
const required = require("events");
export default async function () {
  check("identities", [required === EventEmitter, Named === EventEmitter, all.default === EventEmitter, all.EventEmitter === EventEmitter], [true, true, true, true]);
  class Mine extends EventEmitter {}
  const e = new Mine(), seen = [];
  const f = (...args) => seen.push(["on", ...args]);
  e.on("a", f).once("a", (v) => seen.push(["once", v])).prependListener("a", () => seen.push("first"));
  check("emit", [e.emit("a", 1, 2), e.emit("a", 3), e.emit("b")], [true, true, false]);
  check("order", seen, ["first", ["on", 1, 2], ["once", 1], "first", ["on", 3]]);
  check("count", [e.listenerCount("a"), e.eventNames(), e.listeners("a")[1] === f], [2, ["a"], true]);
  e.off("a", f); check("off", e.listenerCount("a"), 1);
  e.removeAllListeners(); check("removeAllListeners", e.eventNames(), []);
  throws("error", () => e.emit("error", new RangeError("mine")), "RangeError: mine");
  throws("error value", () => e.emit("error", { a: 1 }), "Unhandled error. ({ a: 1 })");
  let told; e.once(errorMonitor, (x) => { told = x.message }); throws("monitored", () => e.emit("error", new Error("m")), "m"); check("monitor", told, "m");
  throws("listener", () => e.on("a", 1), 'The "listener" argument must be of type function. Received type number (1)');
  function Old() { EventEmitter.call(this) } require("util").inherits(Old, EventEmitter);
  const o = new Old(); let hit = 0; o.on("x", () => hit++); o.emit("x"); check("inherits", [hit, o instanceof EventEmitter, Old.super_ === EventEmitter], [1, true, true]);
  setTimeout(() => e.emit("later", 5), 1); check("once promise", await once(e, "later"), [5]);
  setTimeout(() => e.emit("error", new Error("bad")), 1); await rejects("once rejects", once(e, "later"), "bad");
  const ac = new AbortController(); const waits = once(e, "never", { signal: ac.signal }); ac.abort(); await rejects("once aborted", waits, "AbortError");
  const it = on(e, "tick"); e.emit("tick", 1); e.emit("tick", 2);
  check("on", [(await it.next()).value, (await it.next()).value], [[1], [2]]); await it.return(); check("on ends", e.listenerCount("tick"), 0);
  const order = []; const n = new EventEmitter(); n.on("newListener", (t) => order.push(t)); n.on("q", () => {}); n.removeListener("q", () => {}); check("newListener", order, ["q"]);
  n.setMaxListeners(1); check("max", [n.getMaxListeners(), EventEmitter.defaultMaxListeners], [1, 10]);
  const self = new EventEmitter(); let count = 0; const one = () => { count++; self.off("z", one) }; self.on("z", one); self.on("z", () => count++); self.emit("z"); self.emit("z"); check("removal while emitting", count, 3);
}
