import { check, throws, rejects } from "./check.js";
import assert, { AssertionError, strict } from "node:assert";
import strictModule from "node:assert/strict";
export default async function () {
  check("identity", [strictModule === strict, strict.equal === assert.strictEqual, new AssertionError({ message: "m" }) instanceof Error], [true, true, true]);
  assert(1); assert.ok("a"); assert.equal(1, "1"); assert.deepEqual({ a: [1, "2"] }, { a: ["1", 2] }); assert.deepStrictEqual(new Map([[1, { a: new Set([1]) }]]), new Map([[1, { a: new Set([1]) }]])); assert.notStrictEqual(1, 2); assert.match("abc", /b/);
  assert.throws(() => { throw new TypeError("bad value") }, TypeError); assert.throws(() => { throw new TypeError("bad value") }, /bad/); assert.throws(() => { throw new TypeError("bad value") }, { name: "TypeError", message: "bad value" }); assert.throws(() => { throw new Error("x") }, (e) => e.message === "x");
  await assert.rejects(Promise.reject(new Error("no")), /no/); await assert.doesNotReject(async () => 1); assert.doesNotThrow(() => {}); assert.ifError(null);
  throws("ok", () => assert(0, "mine"), "mine"); throws("strictEqual", () => assert.strictEqual(1, 2), "Expected values to be strictly equal:\n\n1 !== 2\n"); throws("deep", () => assert.deepStrictEqual({ a: 1 }, { a: "1" }), "strictly deep-equal");
  throws("throws", () => assert.throws(() => {}), "Missing expected exception"); throws("other", () => assert.throws(() => { throw new RangeError("r") }, TypeError), 'expected to be an instance of "TypeError". Received "RangeError"'); throws("fail", () => assert.fail("f"), "f"); throws("own error", () => assert.equal(1, 2, new RangeError("own")), "RangeError: own");
  await rejects("rejects", assert.rejects(Promise.resolve(1)), "Missing expected rejection");
  try { assert.strictEqual(1, 2) } catch (e) { check("fields", [e.name, e.code, e.actual, e.expected, e.operator, e.generatedMessage], ["AssertionError", "ERR_ASSERTION", 1, 2, "strictEqual", true]) }
}
