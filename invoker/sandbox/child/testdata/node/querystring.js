import { check } from "./check.js";
import qs from "node:querystring";
export default function () {
  check("parse", qs.parse("a=1&b=2&a=3&c&d=%20+x&=e&f=%zz&g=%C3%A9"), { a: ["1", "3"], b: "2", c: "", d: "  x", "": "e", f: "%zz", g: "é" });
  check("separators", qs.parse("a:1;b:2", ";", ":"), { a: "1", b: "2" }); check("max", Object.keys(qs.parse("a=1&b=2&c=3", null, null, { maxKeys: 2 })), ["a", "b"]);
  check("stringify", qs.stringify({ a: [1, true, "x y"], b: "é&", c: null, d: NaN, e: 5n }), "a=1&a=true&a=x%20y&b=%C3%A9%26&c=&d=&e=5");
  check("names", [qs.escape("a b"), qs.unescape("%41"), qs.decode === qs.parse, Object.getPrototypeOf(qs.parse("a"))], ["a%20b", "A", true, null]);
}
