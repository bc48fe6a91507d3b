import { check } from "./check.js";
const caught = async (f) => { try { return await f(); } catch (e) { return e.name ?? e; } };
export default async function () {
  const log = [];
  const inner = (methods) => ({ get [Symbol.iterator]() { log.push("open"); return () => ({ get next() { log.push("get next"); return (v) => { log.push("next"); return { value: v, done: v === "end" }; }; }, ...methods }); } });
  async function* outer(items) { return yield* items; }
  const g = outer(inner({}));
  check("next", [await g.next("a"), await g.next("b"), await g.next("end")], [{ done: false }, { value: "b", done: false }, { value: "end", done: true }]);
  check("lookups", log, ["open", "get next", "next", "next", "next"]);

  const closed = [];
  const closing = inner({ return(v) { closed.push("return"); return { value: v, done: true }; } });
  const h = outer(closing); await h.next(1);
  check("no method throw", [await caught(() => h.throw(new RangeError())), closed], ["TypeError", ["return"]]);
  const i = outer(closing); await i.next(1);
  check("return", [await i.return(7), closed.length], [{ value: 7, done: true }, 2]);
  const j = outer(inner({ return: null })); await j.next(1);
  check("return is null", await j.return(8), { value: 8, done: true });

  const rejecting = inner({ next: () => ({ value: Promise.reject("no"), done: false }), return() { closed.push("closed"); return {}; } });
  check("a rejected value closes", [await caught(async () => { for await (const x of rejecting) check("x", x); }), closed.at(-1)], ["no", "closed"]);
  async function* nested() { try { yield 1; yield* [Promise.resolve(2), 3]; return 4; } finally { log.push("finally"); } }
  async function* twice() { return [yield* nested(), yield* nested()]; }
  const values = []; const all = twice(); let r; while (!(r = await all.next()).done) values.push(r.value);
  check("nested", [values, r.value], [[1, 2, 3, 1, 2, 3], [4, 4]]);
  const seen = []; for await (const x of nested()) { seen.push(x); if (x === 2) break; }
  check("break", [seen, log.at(-1)], [[1, 2], "finally"]);
  function* plain() { const got = yield* inner({}); log.push("got " + got); return yield* [1, 2]; }
  const m = plain();
  check("in a plain generator", [m.next("x"), m.next("y"), m.next("end"), m.next(), m.next(), log.at(-1)], [{ done: false }, { value: "y", done: false }, { value: 1, done: false }, { value: 2, done: false }, { done: true }, "got end"]);
  async function* mixed() { const both = function* () { yield* [1]; yield* plainer(); }; yield* both(); }
  function* plainer() { yield* "ab"; }
  const all2 = []; for await (const x of mixed()) all2.push(x);
  check("both", all2, [1, "a", "b"]);
  const k = outer({ [Symbol.asyncIterator]: () => ({ next: () => ({ value: 1, done: false }), throw: (e) => ({ value: e, done: true }) }) }); await k.next();
  check("throw", await k.throw(5), { value: 5, done: true });
}
