import { check, throws } from "./check.js";
export default function () {
  check("property", [/^[\p{L}]+$/u.test("Ünï"), new RegExp("^[\\p{L}]+$", "u").test("Ünï1"), /\P{L}/u.exec("ab1").index], [true, false, 2]);
  check("sets", "aeiouxyz".replace(/[[a-z]--[aeiou]]/gv, "-"), "aeiou---");
  check("indices", /a(?<b>b)?/d.exec("xab").indices[1], [2, 3]);
  check("indices of groups", /a(?<b>b)?/d.exec("xab").indices.groups.b, [2, 3]);
  check("flags", [/a/dgimsuy.flags, /a/v.unicodeSets, /a/d.hasIndices, /a/.hasIndices, /a/gi.flags], ["dgimsuy", true, true, false, "gi"]);
  check("modifiers", [/(?i:a)b/.test("Ab"), /(?i:a)b/.test("AB"), /(?-i:a)b/i.test("aB")], [true, false, true]);
  check("duplicate names", "2024-05 05/2024".match(/(?<y>\d{4})-\d\d|\d\d\/(?<y>\d{4})/g), ["2024-05", "05/2024"]);
  check("groups", { .../(?<y>\d{4})-(?<m>\d\d)/.exec("2024-05").groups }, { y: "2024", m: "05" });
  check("replace with names", "2024-05".replace(/(?<y>\d+)-(?<m>\d+)/u, "$<m>/$<y>"), "05/2024");
  check("replace with function", "1 é".replace(/\p{L}/gu, (c, at) => c + at), "1 é2");
  check("split", "a1b22c".split(/\p{Nd}+/u), ["a", "b", "c"]);
  check("matchAll", [..."a1b2".matchAll(/\p{Nd}/gu)].map((m) => m.index), [1, 3]);
  check("match", "a1b2".match(/\p{Nd}/gu), ["1", "2"]);
  check("search", "ab1".search(/\p{Nd}/u), 2);
  check("lookbehind", "a1 $2".match(/(?<=\$)\d/)[0], "2");
  const sticky = /\p{L}/uy; sticky.lastIndex = 1; check("sticky", [sticky.test("1a"), sticky.lastIndex, sticky.test("1a"), sticky.lastIndex], [true, 2, false, 0]);
  check("source", [String(/\p{L}\/[/]/u), new RegExp("/").source, new RegExp("\n", "u").source, new RegExp("", "v").source], ["/\\p{L}\\/[/]/u", "\\/", "\\n", "(?:)"]);
  check("instance", [/\p{L}/u instanceof RegExp, Object.getPrototypeOf(/\p{L}/u) === RegExp.prototype, /a/.constructor === RegExp, Object.prototype.toString.call(/\p{L}/u), Object.keys(/\p{L}/u)], [true, true, true, "[object RegExp]", []]);
  class Sub extends RegExp { twice(s) { return this.test(s) && this.test(s) } }
  check("subclass", [new Sub("\\p{L}", "u").twice("a"), new Sub("a").twice("a"), new Sub("a") instanceof Sub], [true, true, true]);
  check("copies", [new RegExp(/\p{L}/gu).flags, new RegExp(/\p{L}/gu, "u").test("é"), RegExp(/a/g).flags, new RegExp(/a/, "v").flags], ["gu", true, "g", "v"]);
  const r = /a/v; check("call", RegExp(r) === r, true);
  check("escape", [RegExp.escape("a.b*c"), RegExp.escape("1-\n"), new RegExp("^" + RegExp.escape("(1+1)") + "$").test("(1+1)")], ["\\x61\\.b\\*c", "\\x31\\x2d\\n", true]);
  for (const bad of ["(", "\\p{Nope}", "[z-a]", "(?<a>.)(?<a>.)"]) throws(bad, () => new RegExp(bad, "u"), "SyntaxError");
  throws("flags", () => new RegExp("a", "uv"), "SyntaxError");
  throws("escape of a number", () => RegExp.escape(1), "TypeError");
  check("emoji", /^\p{RGI_Emoji}$/v.test("👨‍👩‍👧"), true);
  check("case", [/\u212a/iu.test("k"), /\u212a/i.test("k"), /[^x]/iu.test("X")], [true, false, false]);
}
