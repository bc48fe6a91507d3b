// MessageEvent: https://html.spec.whatwg.org/#messageevent
import { check, throws } from "./check.js";
export default function () {
  throws("HTML §9.1 constructor: needs a type", () => new MessageEvent(), "TypeError");
  throws("HTML §9.1 constructor: needs new", () => MessageEvent("x"), "TypeError");
  const e = new MessageEvent("x");
  check("HTML §9.1 MessageEventInit: the defaults", [e.data, e.origin, e.lastEventId, e.source, e.ports, e instanceof Event], [null, "", "", null, [], true]);
  check("HTML §9.1 ports: the same frozen array", [e.ports === e.ports, Object.isFrozen(e.ports)], [true, true]);
  const { port1, port2 } = new MessageChannel(), data = {}, f = new MessageEvent("x", { data, origin: 1, lastEventId: null, source: port1, ports: new Set([port2]) });
  check("HTML §9.1 MessageEventInit: the members", [f.data === data, f.origin, f.lastEventId, f.source === port1, f.ports.length, f.ports[0] === port2], [true, "1", "null", true, 1, true]);
  check("HTML §9.1 data: undefined means null", new MessageEvent("x", { data: undefined }).data, null);
  for (const ports of [1, null, {}, [1], [{}]]) throws("HTML §9.1 ports: a sequence of ports, not " + JSON.stringify(ports), () => new MessageEvent("x", { ports }), "TypeError");
  for (const source of [1, {}, new EventTarget()]) throws("HTML §9.1 source: a port", () => new MessageEvent("x", { source }), "TypeError");
  check("HTML §9.1 source: null", new MessageEvent("x", { source: null }).source, null);
  const order = []; new MessageEvent("x", new Proxy({}, { get(_, n) { order.push(n); } }));
  check("Web IDL §3.2.17: inherited members first, each group by name", order, ["bubbles", "cancelable", "composed", "data", "lastEventId", "origin", "ports", "source"]);
  throws("HTML §9.1 initMessageEvent(): needs a type", () => e.initMessageEvent(), "TypeError");
  f.initMessageEvent("y", true, true, 5, "o", "id", port2, [port1]);
  check("HTML §9.1 initMessageEvent(): the values", [f.type, f.bubbles, f.cancelable, f.data, f.origin, f.lastEventId, f.source === port2, f.ports[0] === port1], ["y", true, true, 5, "o", "id", true, true]);
  f.initMessageEvent("z");
  check("HTML §9.1 initMessageEvent(): the defaults", [f.type, f.bubbles, f.data, f.origin, f.lastEventId, f.source, f.ports], ["z", false, null, "", "", null, []]);
  throws("HTML §9.1 initMessageEvent(): ports are a sequence of ports", () => f.initMessageEvent("z", false, false, 1, "", "", null, [1]), "TypeError");
  const t = new EventTarget(); let inside; t.addEventListener("z", (ev) => { ev.initMessageEvent("w", true, true, 9); inside = [ev.type, ev.data]; }); t.dispatchEvent(f);
  check("HTML §9.1 initMessageEvent(), by DOM §2.2: nothing while it is dispatched", inside, ["z", null]);
  throws("HTML §9.1 data: the receiver is checked", () => Object.getOwnPropertyDescriptor(MessageEvent.prototype, "data").get.call(new Event("x")), "TypeError");
  throws("HTML §9.1 data: read only", () => { e.data = 1; }, "TypeError");
}
