// WebAssembly.Table: https://webassembly.github.io/spec/js-api/#tables
import { check, throws } from "./check.js";
import { I32, FUNC, EXTERN, make, threw } from "./assembler.js";
export default async function () {
  const { Table } = WebAssembly, table = new Table({ element: "anyfunc", initial: 2, maximum: 4 });
  throws("JS API §5.4: needs new", () => Table({ element: "anyfunc", initial: 0 }), "TypeError");
  check("JS API §5.4: the class string and the prototype", [String(table), Object.getPrototypeOf(table) === Table.prototype], ["[object WebAssembly.Table]", true]);
  const f = make({ types: [[[I32], [I32]]], funcs: [[0, 0x20, 0, 0x41, 1, 0x6a]], exports: [["f", 0, 0]] }).f;
  // constructor
  for (const v of [undefined, null, 1, "", true, Symbol()]) throws("JS API §5.4 Table(descriptor): no object, " + String(v), () => new Table(v), "TypeError");
  for (const element of [undefined, null, "", "i32", "f64", "AnyFunc", "anyfunc ", Symbol()]) throws("JS API §5.4 Table(descriptor), steps 1 and 2: element " + String(element), () => new Table({ element, initial: 0 }), "TypeError");
  for (const v of [undefined, NaN, Infinity, -1, 2 ** 32, "x", Symbol(), 1n]) throws("JS API §5.4 Table(descriptor), step 4: initial " + String(v), () => new Table({ element: "anyfunc", initial: v }), "TypeError");
  for (const v of [NaN, -1, 2 ** 32, "x", 1n]) throws("JS API §5.4 Table(descriptor), step 5: maximum " + String(v), () => new Table({ element: "anyfunc", initial: 0, maximum: v }), "TypeError");
  throws("JS API §5.4 Table(descriptor), step 7: the type is not valid", () => new Table({ element: "anyfunc", initial: 2, maximum: 1 }), "RangeError");
  throws("JS API §5.4 Table(descriptor), step 11: no room", () => new Table({ element: "anyfunc", initial: 2 ** 32 - 1 }), "RangeError");
  check("JS API §5.4 Table(descriptor), step 3: address", [new Table({ element: "anyfunc", initial: 1, address: "i32" }).length, threw(() => new Table({ element: "anyfunc", initial: 1, address: "i16" })), threw(() => new Table({ element: "anyfunc", initial: 1n, address: "i64" }))], [1, "TypeError", "TypeError"]);
  check("JS API §5.4 Table(descriptor): values are converted", [new Table({ element: { toString: () => "externref" }, initial: "1.5", maximum: { valueOf: () => 2 } }).length, new Table({ element: "anyfunc", initial: 0, maximum: 2 ** 32 - 1 }).length], [1, 0]);
  const order = [], member = (name, v) => ({ get() { order.push(name); return v; } });
  new Table(Object.defineProperties({}, { maximum: member("maximum", 1), initial: member("initial", 0), element: member("element", "anyfunc"), address: member("address") }));
  check("JS API §5.4 Table(descriptor), steps 1 to 5: the order", order, ["element", "address", "initial", "maximum"]);
  const o = {};
  check("JS API §5.4 Table(descriptor, value), step 8: the default", [table.get(0), table.get(1), new Table({ element: "externref", initial: 1 }).get(0), new Table({ element: "externref", initial: 1 }, undefined).get(0)], [null, null, undefined, undefined]);
  check("JS API §5.4 Table(descriptor, value), step 9: a value for all", [new Table({ element: "anyfunc", initial: 3 }, f).get(2) === f, new Table({ element: "externref", initial: 3 }, o).get(2) === o, new Table({ element: "anyfunc", initial: 1 }, null).get(0), new Table({ element: "externref", initial: 1 }, null).get(0)], [true, true, null, null]);
  for (const v of [1, "", {}, () => {}, Symbol()]) throws("JS API §5.4 Table(descriptor, value), step 9: no exported function, " + String(v), () => new Table({ element: "anyfunc", initial: 1 }, v), "TypeError");
  // length
  check("JS API §5.4 length: read only, and the receiver is checked", [table.length, threw(() => { table.length = 1; }), threw(() => Object.getOwnPropertyDescriptor(Table.prototype, "length").get.call({}))], [2, "TypeError", "TypeError"]);
  // set and get
  check("JS API §5.4 set(index, value): returns undefined", [table.set(1, f), table.get(1) === f, table.get(1)(4)], [undefined, true, 5]);
  for (const v of [2, 99, 2 ** 32 - 1]) check("JS API §5.4 get and set, outside: " + v, [threw(() => table.get(v)), threw(() => table.set(v, f))], ["RangeError", "RangeError"]);
  for (const v of [undefined, NaN, Infinity, -1, 2 ** 32, "x", {}, Symbol(), 1n]) check("JS API §5.4 get and set, the index: " + String(v), [threw(() => table.get(v)), threw(() => table.set(v, f))], ["TypeError", "TypeError"]);
  check("JS API §5.4 get(index), step 5: converted", [table.get("1") === f, table.get(1.9) === f, table.get(null), table.get({ valueOf: () => 1 }) === f], [true, true, null, true]);
  let converted = 0;
  throws("JS API §5.4 set(index, value), step 7: no exported function", () => table.set({ valueOf() { converted++; return 9; } }, {}), "TypeError");
  check("JS API §5.4 set(index, value), step 5: the index is converted before the value, and checked behind it", converted, 1);
  for (const v of [1, "", {}, () => {}, Function.prototype]) throws("JS API §5.4 set(index, value), step 7: " + String(v), () => table.set(0, v), "TypeError");
  check("JS API §5.4 set(index), step 6: the default", [table.set(1), table.get(1), table.set(1, f), table.set(1, null), table.get(1)], [undefined, null, undefined, undefined, null]);
  const e = new Table({ element: "externref", initial: 2 }, "x");
  check("JS API §5.4 set(index), step 6: the default of externref", [e.get(0), e.set(0), e.get(0), e.set(1, o), e.get(1) === o], ["x", undefined, undefined, undefined, true]);
  throws("JS API §5.4 get(): needs an index", () => table.get(), "TypeError");
  throws("JS API §5.4 set(): needs an index", () => table.set(), "TypeError");
  // grow
  check("JS API §5.4 grow(delta, value), step 11: the size before", [table.grow(1, f), table.length, table.get(2) === f, table.grow(0), table.grow(1), table.get(3), table.length], [2, 3, true, 3, 3, null, 4]);
  throws("JS API §5.4 grow(delta), step 9: beyond the maximum", () => table.grow(1), "RangeError");
  check("JS API §5.4 grow(delta): a failure changes nothing", [table.length, table.get(2) === f], [4, true]);
  for (const v of [undefined, NaN, -1, 2 ** 32, "x", Symbol(), 1n]) throws("JS API §5.4 grow(delta), step 5: " + String(v), () => table.grow(v), "TypeError");
  throws("JS API §5.4 grow(delta, value), step 7: no exported function", () => table.grow(0, {}), "TypeError");
  check("JS API §5.4 grow(delta, value): of externref", [e.grow(1), e.get(2), e.grow(1, o), e.get(3) === o], [2, undefined, 3, true]);
  throws("JS API §5.4 grow(): needs a number", () => table.grow(), "TypeError");
  throws("JS API §5.4 grow(delta), step 9: no room", () => e.grow(2 ** 32 - 1), "RangeError");
  for (const name of ["get", "set", "grow"]) for (const v of [undefined, {}, Table, Table.prototype]) throws("JS API §5.4 " + name + "(): the receiver is checked, " + String(v), () => Table.prototype[name].call(v, 0), "TypeError");
  // in instances
  const uses = { types: [[[I32, I32], [I32]], [[I32], [I32]]], imports: [["m", "t", [1, FUNC, 0, 1]]], funcs: [[0, 0x20, 0, 0x20, 1, 0x11, 1, 0], [1, 0x20, 0, 0x41, 3, 0x6c]], exports: [["call", 0, 0], ["t", 1, 0], ["triple", 0, 1]], elements: [[0, 0x41, 0, 0x0b, 1, 1]] };
  table.set(1, f);
  const a = make(uses, { m: { t: table } });
  check("JS API §5.4: instances see the elements", [a.t === table, a.call(10, 1), a.call(10, 0), threw(() => a.call(1, 3)), threw(() => a.call(1, 9))], [true, 11, 30, "RuntimeError", "RuntimeError"]);
  check("JS API §5.6 create a new Exported Function, step 2: an element is the object of its function", [table.get(0) === a.triple, table.get(0)(7), table.get(0) === table.get(0)], [true, 21, true]);
  const at = (table, offset) => threw(() => make({ ...uses, elements: [[0, 0x41, offset, 0x0b, 1, 1]] }, { m: { t: table } }));
  check("JS API §5 instantiate the core, step 3: elements outside of an imported table", [at(table, 3), at(table, 4), at(new Table({ element: "anyfunc", initial: 5 }), 4)], [undefined, "RuntimeError", undefined]);
  throws("JS API §5 instantiate the core, step 3: another element type", () => make({ imports: [["m", "t", [1, EXTERN, 0, 1]]] }, { m: { t: table } }), "LinkError");
  const own = make({ types: [[[I32], [I32]]], tables: [[EXTERN, 1, 3]], funcs: [[0, 0xd0, EXTERN, 0x20, 0, 0xfc, 15, 0]], exports: [["t", 1, 0], ["grow", 0, 0]] });
  check("JS API §5.4: a module's own table", [own.t.length, own.t.get(0), own.grow(1), own.t.length, own.t.get(1), own.grow(2), own.t.length], [1, null, 1, 2, null, -1, 2]);
}
