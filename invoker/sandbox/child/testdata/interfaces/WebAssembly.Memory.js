// WebAssembly.Memory: https://webassembly.github.io/spec/js-api/#memories
import { check, throws } from "./check.js";
import { I32, make, threw } from "./assembler.js";
export default async function () {
  const { Memory } = WebAssembly;
  throws("JS API §5.3: needs new", () => Memory({ initial: 0 }), "TypeError");
  const memory = new Memory({ initial: 1, maximum: 3 });
  check("JS API §5.3: the class string and the prototype", [String(memory), Object.getPrototypeOf(memory) === Memory.prototype], ["[object WebAssembly.Memory]", true]);
  // the descriptor
  for (const v of [undefined, null, 1, "", true, Symbol()]) throws("JS API §5.3 Memory(descriptor): no object, " + String(v), () => new Memory(v), "TypeError");
  for (const v of [undefined, NaN, Infinity, -Infinity, -1, 2 ** 32, "x", {}, Symbol(), 1n]) throws("JS API §5.3 Memory(descriptor), step 2: initial " + String(v), () => new Memory({ initial: v }), "TypeError");
  for (const v of [NaN, Infinity, -1, 2 ** 32, "x", {}, 1n]) throws("JS API §5.3 Memory(descriptor), step 3: maximum " + String(v), () => new Memory({ initial: 0, maximum: v }), "TypeError");
  check("JS API §5.6 AddressValueToU64: numbers are converted and truncated", [1.9, "1", null, true, { valueOf: () => 1 }, -0.9].map((initial) => new Memory({ initial }).buffer.byteLength / 65536), [1, 1, 0, 1, 1, 0]);
  for (const [initial, maximum] of [[2, 1], [65537], [0, 65537], [2 ** 32 - 1]]) throws("JS API §5.3 Memory(descriptor), step 5: the type is not valid, " + initial + " " + maximum, () => new Memory({ initial, maximum }), "RangeError");
  throws("JS API §5.3 Memory(descriptor), step 7: no room", () => new Memory({ initial: 65536 }), "RangeError");
  check("JS API §5.3 Memory(descriptor), step 3: a maximum needs no room", new Memory({ initial: 0, maximum: 65536 }).buffer.byteLength, 0);
  check("JS API §5.3 Memory(descriptor), step 1: address", [new Memory({ initial: 0, address: "i32" }).buffer.byteLength, new Memory({ initial: 0, address: undefined }).buffer.byteLength, threw(() => new Memory({ initial: 0, address: "i16" })), threw(() => new Memory({ initial: 0, address: null }))], [0, 0, "TypeError", "TypeError"]);
  throws("JS API §5.3 Memory(descriptor): addresses of 64 bits are not supported", () => new Memory({ initial: 0n, address: "i64" }), "not supported");
  throws("Threads: shared memories are not supported", () => new Memory({ initial: 0, maximum: 1, shared: true }), "TypeError");
  const order = [], member = (name, v) => ({ enumerable: true, get() { order.push(name); return v; } });
  new Memory(Object.defineProperties({}, { maximum: member("maximum", 1), initial: member("initial", 0), address: member("address", "i32") }));
  check("Web IDL §3.2.17: the members in order", order, ["address", "initial", "maximum"]);
  // buffer
  const first = memory.buffer, view = new Uint8Array(first);
  check("JS API §5.3 buffer: one ArrayBuffer of zeros", [first instanceof ArrayBuffer, memory.buffer === first, first.byteLength, view.every((b) => b === 0), first.resizable], [true, true, 65536, true, false]);
  check("JS API §5.3 buffer: read only, and the receiver is checked", [threw(() => { memory.buffer = first; }), threw(() => Object.getOwnPropertyDescriptor(Memory.prototype, "buffer").get.call({}))], ["TypeError", "TypeError"]);
  check("JS API §5.3 create a fixed length memory buffer, step 5: it cannot be detached", [threw(() => first.transfer()), threw(() => structuredClone(first, { transfer: [first] })), first.byteLength], ["TypeError", "TypeError", 65536]);
  check("HTML §2.7.3: the content can be cloned", structuredClone(first).byteLength, 65536);
  // grow
  view[65535] = 7;
  check("JS API §5.3 grow(delta), step 6: the size before", memory.grow(1), 1);
  check("JS API §5.3 refresh the Memory buffer, step 5: the old buffer is detached", [first.byteLength, view.length, first.detached, memory.buffer === first, memory.buffer.byteLength, new Uint8Array(memory.buffer)[65535]], [0, 0, true, false, 131072, 7]);
  const second = memory.buffer;
  check("JS API §5.3 grow(delta): by 0 too", [memory.grow(0), second.byteLength, memory.buffer === second, memory.buffer.byteLength], [2, 0, false, 131072]);
  throws("JS API §5.3 grow the memory buffer, step 4: beyond the maximum", () => memory.grow(2), "RangeError");
  check("JS API §5.3 grow(): a failure changes nothing", [memory.buffer.byteLength, new Uint8Array(memory.buffer)[65535]], [131072, 7]);
  for (const v of [NaN, Infinity, -1, 2 ** 32, "x", {}, Symbol(), 1n]) throws("JS API §5.3 grow(delta), step 4: " + String(v), () => memory.grow(v), "TypeError");
  check("JS API §5.3 grow(delta): converted", [memory.grow("1"), memory.buffer.byteLength], [2, 196608]);
  throws("JS API §5.3 grow(): needs a number", () => memory.grow(), "TypeError");
  for (const v of [undefined, null, {}, first, Memory, Memory.prototype]) throws("JS API §5.3 grow(): the receiver is checked, " + String(v), () => Memory.prototype.grow.call(v, 0), "TypeError");
  // memory.grow
  const { m, grow, size, store, load } = make({ types: [[[I32], [I32]], [[I32, I32], []], [[], [I32]]], memories: [[1, 3]], funcs: [[0, 0x20, 0, 0x40, 0], [2, 0x3f, 0], [1, 0x20, 0, 0x20, 1, 0x3a, 0, 0], [0, 0x20, 0, 0x2d, 0, 0]], exports: [["m", 2, 0], ["grow", 0, 0], ["size", 0, 1], ["store", 0, 2], ["load", 0, 3]] });
  const old = m.buffer;
  store(9, 200);
  check("JS API §5.3: the buffer is the memory", [new Uint8Array(m.buffer)[9], (new Uint8Array(m.buffer)[8] = 5, load(8))], [200, 5]);
  check("JS API §5.3 memory.grow, step 1: the buffer is refreshed", [grow(1), old.detached, m.buffer.byteLength, load(9), size()], [1, true, 131072, 200, 2]);
  const now = m.buffer;
  check("JS API §5.3 memory.grow, step 1: a failure refreshes nothing", [grow(2), m.buffer === now, now.byteLength], [-1, true, 131072]);
  check("JS API §5.3 grow(): the module sees it", [m.grow(1), size(), load(9)], [2, 3, 200]);
}
