import { check, throws } from "./check.js";
export default function () {
  const p = new URLSearchParams("?a=1&b=2&a=3&c&=x&d=%zz%41+%e4%bd%a0");
  check("get", [p.get("a"), p.get("c"), p.get(""), p.get("none"), p.get("d")], ["1", "", "x", null, "%zzA 你"]);
  check("invalid UTF-8", new URLSearchParams("a=%e2%82%ff%ffb").get("a"), "\ufffd\ufffd\ufffdb");
  check("getAll", p.getAll("a"), ["1", "3"]);
  p.set("a", "9"); p.delete("c"); p.append("é", "ü~*-._");
  check("toString", String(p), "a=9&b=2&=x&d=%25zzA+%E4%BD%A0&%C3%A9=%C3%BC%7E*-._");
  check("size", p.size, 5);
  check("from object", String(new URLSearchParams({ x: 1, y: "a b" })), "x=1&y=a+b");
  check("from pairs", String(new URLSearchParams([["x", "1"], ["x", "2"]])), "x=1&x=2");
  check("from map", String(new URLSearchParams(new Map([["m", "1"]]))), "m=1");
  check("copy", String(new URLSearchParams(new URLSearchParams("q=1"))), "q=1");
  throws("bad pairs", () => new URLSearchParams([["x"]]), "TypeError");
  check("has", [p.has("a"), p.has("a", "9"), p.has("a", "8"), p.has("no")], [true, true, false, false]);
  const q = new URLSearchParams("b=1&a=2&b=0"); q.sort();
  check("sort", String(q), "a=2&b=1&b=0");
  q.delete("b", "1"); check("delete by value", String(q), "a=2&b=0");
  check("iteration", [[...q], [...q.keys()], [...q.values()], Object.fromEntries(q)], [[["a", "2"], ["b", "0"]], ["a", "b"], ["2", "0"], { a: "2", b: "0" }]);
  const seen = []; q.forEach((v, k) => seen.push(k + v)); check("forEach", seen, ["a2", "b0"]);
}
