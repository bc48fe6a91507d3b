// MessageEvent, MessageChannel, MessagePort: https://html.spec.whatwg.org/#web-messaging, sections 9.1, 9.4.
import { check, throws } from "./check.js";
const heard = (port, n) => new Promise((r) => { const out = []; port.onmessage = (e) => { out.push(e.data); if (out.length === n) r(out); }; });
const tick = () => new Promise((r) => setTimeout(r, 0));
export default async function () {
  throws("a port has no constructor", () => new MessagePort(), "TypeError"); throws("without new", () => MessageChannel(), "TypeError");
  const { port1, port2 } = new MessageChannel(); check("ports", [port1 instanceof MessagePort, port1 instanceof EventTarget, port1 !== port2, String(port1), port1.onmessage], [true, true, true, "[object MessagePort]", null]);
  const sent = { a: [1] }; port1.postMessage(sent); sent.a = 2; port1.postMessage("b"); port1.postMessage(3); let order = []; order.push("sync"); check("copies, in their order", await heard(port2, 3), [{ a: [1] }, "b", 3]);
  throws("no message", () => port1.postMessage(), "TypeError"); throws("no copy", () => port1.postMessage(() => {}), "DataCloneError"); throws("options", () => port1.postMessage(1, 2), "TypeError"); throws("itself", () => port1.postMessage(1, [port1]), "DataCloneError");
  // start
  const c = new MessageChannel(), got = []; c.port2.addEventListener("message", (e) => got.push(e.data)); c.port1.postMessage(1); await tick(); check("not started", got, []); c.port2.start(); c.port2.start(); await tick(); check("started", got, [1]);
  // the event
  const d = new MessageChannel(); const event = new Promise((r) => { d.port2.onmessage = r; }); d.port1.postMessage("x"); const e = await event; check("event", [e.type, e.data, e.origin, e.lastEventId, e.source, e.ports, e.isTrusted, e instanceof MessageEvent, Object.isFrozen(e.ports), e.target === d.port2], ["message", "x", "", "", null, [], true, true, true, true]);
  // a task, behind microtasks
  const seen = [], f = new MessageChannel(); f.port2.onmessage = () => seen.push("message"); f.port1.postMessage(0); Promise.resolve().then(() => seen.push("microtask")); seen.push("sync"); await tick(); check("order", seen, ["sync", "microtask", "message"]);
  // transfer
  const g = new MessageChannel(), h = new MessageChannel(), buffer = new ArrayBuffer(4); const withPort = new Promise((r) => { g.port2.onmessage = r; }); h.port2.postMessage("waiting"); g.port1.postMessage({ p: h.port1, buffer }, { transfer: [h.port1, buffer] }); const m = await withPort;
  check("transfer", [m.ports.length, m.ports[0] === m.data.p, m.data.buffer.byteLength, buffer.byteLength], [1, true, 4, 0]); check("waiting messages move", await heard(m.ports[0], 1), ["waiting"]); m.ports[0].postMessage("back"); check("entangled", await heard(h.port2, 1), ["back"]); h.port1.postMessage("lost"); throws("moved twice", () => g.port1.postMessage(0, [h.port1]), "DataCloneError");
  // close
  const k = new MessageChannel(), left = []; k.port2.onmessage = (x) => left.push(x.data); k.port2.addEventListener("close", () => left.push("close")); k.port1.postMessage("before"); k.port1.close(); k.port1.postMessage("after"); await tick(); await tick(); check("close", left, ["before", "close"]); k.port2.postMessage("nobody"); k.port1.close();
  const o = new MessageChannel(); o.port2.onmessage = () => left.push("closed"); o.port1.postMessage(1); o.port2.close(); await tick(); check("a closed port hears nothing", left.includes("closed"), false);
  // handlers
  const q = new MessageChannel(); q.port2.onmessage = () => {}; q.port2.onmessage = null; check("handler", [q.port2.onmessage, q.port2.onmessageerror], [null, null]); throws("receiver", () => MessagePort.prototype.postMessage.call({}, 1), "TypeError");
  // 9.1 MessageEvent
  throws("no type", () => new MessageEvent(), "TypeError"); throws("ports", () => new MessageEvent("x", { ports: [1] }), "TypeError"); throws("source", () => new MessageEvent("x", { source: {} }), "TypeError"); const n = new MessageEvent("x", { data: 1, origin: "o", lastEventId: 2, ports: [port1], source: port2 }); check("MessageEvent", [n.data, n.origin, n.lastEventId, n.ports[0] === port1, n.source === port2, new MessageEvent("x").data], [1, "o", "2", true, true, null]); n.initMessageEvent("y", false, false, 5, "p"); check("initMessageEvent", [n.type, n.data, n.origin, n.ports], ["y", 5, "p", []]);
}
