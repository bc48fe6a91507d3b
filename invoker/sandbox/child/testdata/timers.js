import { check, throws } from "./check.js";
export default async function () {
  const seen = [];
  await new Promise((done) => {
    setTimeout((a, b) => seen.push("t2", a, b), 2, "x", "y");
    setTimeout(() => seen.push("t0"), 0);
    setImmediate((v) => seen.push(v), "i");
    const gone = setTimeout(() => seen.push("cleared"), 1); clearTimeout(gone); clearTimeout(gone); clearTimeout(undefined); clearTimeout("x");
    let n = 0; const every = setInterval(() => { seen.push("v" + ++n); if (n === 2) { clearInterval(every); setTimeout(done, 3) } }, 1);
    queueMicrotask(() => seen.push("micro")); Promise.resolve().then(() => seen.push("then"));
    seen.push("sync");
  });
  check("order", seen.slice(0, 5), ["sync", "micro", "then", "t0", "i"]);
  check("rest", seen.slice(5).sort(), ["t2", "v1", "v2", "x", "y"]);
  const order = []; await new Promise((r) => { setTimeout(() => { order.push(1); Promise.resolve().then(() => order.push(2)) }, 0); setTimeout(() => { order.push(3); r() }, 0) });
  check("microtasks between timers", order, [1, 2, 3]);
  throws("callback", () => setTimeout("code"), "must be a function");
  throws("microtask", () => queueMicrotask(1), "must be a function");
  const before = performance.now(); await new Promise((r) => setTimeout(r, 5));
  const took = performance.now() - before; check("performance", took >= 4.5 && took < 5000, true);
  check("names", [setTimeout.name, setTimeout.length, fetch.name, console.log.name, typeof performance.timeOrigin], ["setTimeout", 1, "fetch", "log", "number"]);
}
