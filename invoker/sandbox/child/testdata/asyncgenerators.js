import { check } from "./check.js";
const f = async function* () { yield 1; };
async function* g(x) { yield x; }
const o = { v: async function* () {}, async *m() { yield 3; } };
class C { async *m() { yield this; } static field = async function* () {}; }
export default async function () {
  const prototype = Object.getPrototypeOf(async function* () {});
  const { prototype: generators } = prototype;
  const iterators = Object.getPrototypeOf(generators);
  check("tags", [prototype[Symbol.toStringTag], generators[Symbol.toStringTag], prototype.constructor.name], ["AsyncGeneratorFunction", "AsyncGenerator", "AsyncGeneratorFunction"]);
  check("iterators return themselves", [typeof iterators[Symbol.asyncIterator], iterators[Symbol.asyncIterator].call(7)], ["function", 7]);
  for (const [name, fn] of Object.entries({ f, g, v: o.v, field: C.field })) {
    check(name, [fn.name, Object.getPrototypeOf(fn) === prototype, Object.getPrototypeOf(fn.prototype) === generators, Object.keys(fn.prototype)], [name, true, true, []]);
  }
  check("they run", [(await f().next()).value, (await g(2).next()).value, (await o.m().next()).value], [1, 2, 3]);
  const c = new C();
  check("a method", (await c.m().next()).value === c, true);
  check("not a generator", await generators.next.call({}).catch((e) => e.name), "TypeError");
  check("arguments", await (async function* () { yield arguments.length; })(1, 2).next(), { value: 2, done: false });
  { async function* inBlock() { yield 5; } check("in a block", Object.getPrototypeOf(inBlock) === prototype, true); }
  check("as arguments", [async function* a() {}, async function* () {}].map((x) => [x.name, Object.getPrototypeOf(x) === prototype]), [["a", true], ["", true]]);
}
