import { check, throws } from "./check.js";
export default async function () {
  class Fields { set = 1; get = 2; static = 3; async = 4; static static = 5; static { this.block = 6 } #p = 7; get p() { return this.#p } }
  check("fields", [{ ...new Fields() }, Fields.static, Fields.block, new Fields().p], [{ set: 1, get: 2, static: 3, async: 4 }, 5, 6, 7]);
  check("symbols", [typeof Symbol.asyncIterator, typeof Symbol.dispose, typeof Symbol.asyncDispose], ["symbol", "symbol", "symbol"]);
  async function* numbers() { yield 1; yield 2 }
  const seen = []; for await (const n of numbers()) seen.push(n); check("for await", seen, [1, 2]);
  const own = { async *[Symbol.asyncIterator]() { yield 3 } }; for await (const n of own) seen.push(n); check("own async iterator", seen, [1, 2, 3]);
  const order = []; { using a = { [Symbol.dispose]() { order.push("a") } }; await using b = { async [Symbol.asyncDispose]() { order.push("b") } }; order.push("body") }
  check("using", order, ["body", "b", "a"]);
  check("fromAsync", await Array.fromAsync(numbers(), (n) => n * 2), [2, 4]);
  check("typed arrays from", [[...Uint8Array.from("123")], [...Uint8Array.from(new Set([1, 2]))], [...Uint16Array.from({ length: 1, 0: 5 })]], [[1, 2, 3], [1, 2], [5]]);
  check("well-formed", ["a\ud800".isWellFormed(), "a\ud800b".toWellFormed(), "😀".isWellFormed()], [false, "a\ufffdb", true]);
  const o = {}; o.__defineGetter__("x", () => 5); o.__defineSetter__("y", function (v) { this.z = v }); o.y = 2;
  check("accessors", [o.x, o.z, typeof o.__lookupGetter__("x"), o.__lookupSetter__("x"), Object.keys(o)], [5, 2, "function", undefined, ["x", "y", "z"]]);
  throws("accessor", () => o.__defineGetter__("q", 1), "TypeError");
  const refused = (text) => { try { JSON.parse(text); return "none" } catch (e) { return `${e.name}: ${e.message} ${e instanceof SyntaxError}` } };
  check("JSON.parse refuses", [undefined, "{", "", '{"a": }', "[1] 2"].map(refused), ["SyntaxError: Unexpected token 'u' in JSON at position 0 true", "SyntaxError: Unexpected end of JSON input true", "SyntaxError: Unexpected end of JSON input true", "SyntaxError: Unexpected token '}' in JSON at position 6 true", "SyntaxError: Unexpected token '2' in JSON at position 4 true"]);
  check("JSON.parse revives", [JSON.parse('{"a": [1, 2]}', (k, v) => typeof v === "number" ? v + 1 : v), JSON.parse({ toString: () => "[0]" }), JSON.parse.length, JSON.parse.name, JSON.parse("1", 5)], [{ a: [2, 3] }, [0], 2, "parse", 1]);
  throws("JSON.parse of a symbol", () => JSON.parse(Symbol("1")), "TypeError"); throws("a reviver that throws", () => JSON.parse("1", () => { throw new RangeError("no") }), "RangeError");
  const dec = (value, ctx) => function (...args) { return ctx.name + value.call(this, ...args) };
  class Decorated { @dec m(x) { return x } } check("decorators", new Decorated().m(1), "m1");
}
