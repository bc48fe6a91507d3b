import { check, throws } from "./check.js";

const parts = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const strings = (...args) => { const p = new URLPattern(...args); return parts.map((n) => p[n]).join(" | "); };
const groups = (p, input, part = "pathname") => p.exec(input)?.[part].groups;

export default function () {
  constructors();
  components();
  syntax();
  canonical();
  results();
  conversions();
  hostile();
}

// https://urlpattern.spec.whatwg.org/#constructor-string-parsing
function constructors() {
  for (const [args, want] of [
    [["https://example.com"], "https | * | * | example.com |  | * | * | *"],
    [["https://example.com/:category/*"], "https | * | * | example.com |  | /:category/* | * | *"],
    [["http{s}?://{:subdomain.}?shop.example/products/:id([0-9]+)#reviews"], "http{s}? | * | * | {:subdomain.}?shop.example |  | /products/:id([0-9]+) |  | reviews"],
    [["../admin/*", "https://discussion.example/forum/?page=2"], "https | * | * | discussion.example |  | /admin/* | * | *"],
    [["https://u\\:p@h:8080/p?q#f"], "https | u | p | h | 8080 | /p | q | f"],
    [["https://example.com?q"], "https | * | * | example.com |  | / | q | *"],
    [["https://example.com:80{80}?/x"], "https | * | * | example.com | 80{80}? | /x | * | *"],
    [["data\\:x?y"], "data | * | * |  |  | x | y | *"],
    [["foo://bar#x"], "foo | * | * | bar |  |  |  | x"],
    [["https\\:a.b/c"], "https | * | * | a.b |  | /c | * | *"],
    [["https://{sub.}?[\\:\\:1]/"], "https | * | * | {sub.}?[\\:\\:1] |  | / | * | *"],
    [["https://[\\:\\:ABC]/"], "https | * | * | [\\:\\:abc] |  | / | * | *"],
    [["?q", "https://a.example/b/c?d#e"], "https | * | * | a.example |  | /b/c | q | *"],
    [["#:x", "https://a.example:8080/b(c)?d#e"], "https | * | * | a.example | 8080 | /b\\(c\\) | d | :x"],
    [["b/*", "https://a.example/x/y"], "https | * | * | a.example |  | /x/b/* | * | *"],
    [[{ pathname: "b*", baseURL: "https://a.example/x/y?z" }], "https | * | * | a.example |  | /x/b* | * | *"],
    [[{ pathname: "{/b}", baseURL: "https://a.example/x/y" }], "https | * | * | a.example |  | /b | * | *"],
    [[{ hostname: "h", baseURL: "https://u:p@a.example:81/x" }], "https | * | * | h | * | * | * | *"],
    [[{ protocol: "https:", search: "?a", hash: "#b" }], "https | * | * | * | * | * | a | b"],
    [[{ protocol: "wss", port: "443" }], "wss | * | * | * |  | * | * | *"],
    [[], "* | * | * | * | * | * | * | *"],
    [[{}, { ignoreCase: true }], "* | * | * | * | * | * | * | *"],
    [["/x", "data:text"], "data | * | * |  |  | /x | * | *"],
  ]) {
    let got;
    try { got = strings(...args); } catch (e) { got = e instanceof TypeError ? "error" : String(e); }
    check("new URLPattern(" + JSON.stringify(args).slice(1, -1) + ")", got, want);
  }
  throws("a relative string", () => new URLPattern("/x"), "needs a base URL");
  throws("the base URL", () => new URLPattern("/x", "nope"), 'TypeError: URLPattern: invalid base URL "nope"');
  throws("two base URLs", () => new URLPattern({ baseURL: "https://a" }, "https://b"), "TypeError");
  throws("an undefined third of three", () => new URLPattern("/x", undefined, {}), 'invalid base URL "undefined"');
  throws("a number as options", () => new URLPattern("https://a", "https://b", 5), "TypeError");
  throws("no base URL but undefined", () => new URLPattern("/x", undefined), "needs a base URL");
  throws("a URL with syntax", () => new URLPattern(new URL("https://example.org/%(")), "TypeError");
  throws("an open group", () => new URLPattern("(\\"), "TypeError");
  check("undefined arguments", new URLPattern(undefined, undefined).pathname, "*");
  throws("a symbol", () => new URLPattern(Symbol("x")), "TypeError");
  throws("a bare call of a getter", () => URLPattern.prototype.protocol, "Illegal invocation");
}

// https://urlpattern.spec.whatwg.org/#component
function components() {
  const p = new URLPattern({ pathname: "/Foo/:x" });
  check("case", [p.test("https://a/Foo/b"), p.test("https://a/foo/b")], [true, false]);
  const q = new URLPattern({ pathname: "/Foo/:x", hostname: "Example.COM" }, { ignoreCase: true });
  check("ignoreCase", [q.test("https://EXAMPLE.com/fOO/b"), q.hostname], [true, "example.com"]);
  const upper = new URLPattern({ username: "Bob" }, { ignoreCase: true });
  check("ignoreCase is not for users", [upper.test("https://Bob@a"), upper.test("https://bob@a")], [true, false]);
  check("hasRegExpGroups", [new URLPattern({ pathname: "/:x/*" }), new URLPattern({ hash: "(a)" }), new URLPattern({ pathname: "/(.*)" }), new URLPattern({ pathname: "/:x([^\\/]+?)" })]
    .map((x) => x.hasRegExpGroups), [false, true, false, false]);
  for (const part of parts) {
    const has = (pattern) => new URLPattern({ [part]: pattern }).hasRegExpGroups;
    check("hasRegExpGroups of " + part, ["*", ":foo", ":foo?", "{:foo}*", ":foo(hi)", "(hi)"].map(has), [false, false, false, false, true, true]);
    if (part !== "port" && part !== "protocol") check("hasRegExpGroups of a longer " + part, ["a-{:hello}-z-*-a", "a-(hi)-z-(lo)-a"].map(has), [false, true]);
  }
  check("wildcards that are spelled", [new URLPattern({ pathname: "/(.*)" }).pathname, new URLPattern({ pathname: "/:x([^\\/]+?)" }).pathname], ["/*", "/:x"]);
  check("members", Object.keys(URLPattern.prototype).sort(), [...parts, "exec", "hasRegExpGroups", "test"].sort());
  check("tag", [String(p), URLPattern.name, URLPattern.length], ["[object URLPattern]", "URLPattern", 0]);
  check("read only", (() => { try { "use strict"; p.pathname = "/x"; } catch (e) { return e.name; } })(), "TypeError");
}

// https://urlpattern.spec.whatwg.org/#parsing
function syntax() {
  const path = (pathname) => new URLPattern({ pathname });
  const on = (pathname, url) => groups(path(pathname), { pathname: url });
  for (const [pattern, input, want] of [
    ["/foo/:bar", "/foo/bar", { bar: "bar" }],
    ["/foo/:bar", "/foo/a/b", undefined],
    ["/foo/:bar?", "/foo", { bar: undefined }],
    ["/foo/:bar*", "/foo/a/b", { bar: "a/b" }],
    ["/foo/:bar*", "/foo", { bar: undefined }],
    ["/foo/:bar+", "/foo/a/b/c", { bar: "a/b/c" }],
    ["/foo/:bar+", "/foo", undefined],
    ["/foo/*", "/foo/", { 0: "" }],
    ["/foo/*?", "/foo", { 0: undefined }],
    ["/foo{/bar}*", "/foo/bar/bar", {}],
    ["/foo{/bar}?x", "/foox", {}],
    ["/{:a-}+z", "/1-2-z", { a: "1-2" }],
    ["/([a-z]+)/(\\d+)", "/abc/12", { 0: "abc", 1: "12" }],
    ["/((?:x|y)z)", "/xz", { 0: "xz" }],
    ["/:a(x):b(y)", "/xy", { a: "x", b: "y" }],
    ["/:über", "/x", { "über": "x" }],
    ["/:__proto__", "/x", { ["__proto__"]: "x" }],
    ["/:a\\:b", "/x:b", { a: "x" }],
    ["/\\{x\\}", "/%7Bx%7D", {}],
    ["/(?:)", "", "error"],
    ["/()", "", "error"],
    ["/(a", "", "error"],
    ["/(a(b))", "", "error"],
    ["/(ä)", "", "error"],
    ["/(\\", "", "error"],
    ["/([)", "", "error"],
    ["/(a", "", "error"],
    ["/a)", "/a)", {}],
    ["/:a/:a", "", "error"],
    ["/{a{b}}", "", "error"],
    ["/{a", "", "error"],
    ["/a}", "", "error"],
    ["/:", "", "error"],
    ["/+", "", "error"],
    ["/\\", "", "error"],
    ["/(a{3)", "", "error"],
    ["/(\\p{RGI_Emoji}|[a--b])", "/a", { 0: "a" }],
    ["/([[a-c]--b])", "/c", { 0: "c" }],
    ["/([[a-c]--b])", "/b", undefined],
  ]) {
    let got;
    try { got = on(pattern, input); } catch (e) { got = e instanceof TypeError ? "error" : String(e); }
    const flat = (g) => g && typeof g === "object" ? JSON.stringify(Object.keys(g).map((k) => [k, g[k] === undefined ? "-" : g[k]])) : g;
    check(pattern + " on " + input, flat(got), flat(want));
  }
  // https://urlpattern.spec.whatwg.org/#converting-part-lists-to-pattern-strings
  for (const [pattern, want] of [
    ["/{:a}b", "/{:a}b"], ["/{:a}:b", "/{:a}:b"], ["/:a{b}", "{/:a}b"], ["/{:a}*", "/{:a}*"], ["/{:a}?", "/{:a}?"], ["/{a}", "/a"], ["/{:a\\b}", "/{:a\\b}"],
    ["/{a:b}", "/{a:b}"], ["/:a{(x)}", "{/:a}(x)"], ["{/:a}", "/:a"], ["/*{*}", "/*(.*)"], ["/*{*}?", "/*(.*)?"], ["/(.*)(.*)", "/*(.*)"],
    ["/([^\\/]+?)", "/([^\\/]+?)"], ["/\\(\\)", "/\\(\\)"], ["/{}", "/"], ["/{}?", "/"], ["/foo/{*}", "/foo/{*}"], ["/foo/{:bar}+", "/foo/{:bar}+"],
  ]) check("pattern string of " + pattern, path(pattern).pathname, want);
}

// https://urlpattern.spec.whatwg.org/#canon-encoding-callbacks
function canonical() {
  for (const [init, part, want] of [
    [{ protocol: "HTTPS" }, "protocol", "https"], [{ protocol: "a b" }, "protocol", "error"], [{ protocol: "café" }, "protocol", "error"],
    [{ username: "ü" }, "username", "%C3%BC"], [{ password: "a@b" }, "password", "a%40b"],
    [{ hostname: "BÜCHER.example" }, "hostname", "xn--bcher-kva.example"], [{ hostname: "*.Example" }, "hostname", "*.example"],
    [{ hostname: "a b" }, "hostname", "error"], [{ hostname: "a\\:8" }, "hostname", "error"], [{ hostname: "a/b" }, "hostname", "a"], [{ hostname: "/b" }, "hostname", "error"],
    [{ hostname: "[:a" }, "hostname", "[:a"], [{ hostname: "[::1]" }, "hostname", "error"], [{ hostname: "[\\:\\:AB]" }, "hostname", "[\\:\\:ab]"],
    [{ hostname: "{[\\:\\:}1]" }, "hostname", "[\\:\\:1]"], [{ hostname: "[\\:\\:xyz]" }, "hostname", "error"], [{ hostname: "{[\\:\\:1]}?" }, "hostname", "{[\\:\\:1]}?"],
    [{ port: "8\t0x" }, "port", "80"], [{ port: "99999" }, "port", "error"], [{ port: "x" }, "port", "error"], [{ port: "443*" }, "port", "443*"],
    [{ pathname: "/ü/../b" }, "pathname", "/b"], [{ pathname: "/a/./:x" }, "pathname", "/a//:x"], [{ pathname: "ü" }, "pathname", "%C3%BC"], [{ pathname: "./x" }, "pathname", "./x"],
    [{ protocol: "data", pathname: "a b/../c" }, "pathname", "a b/../c"], [{ protocol: "(data|http)", pathname: "/a/../c" }, "pathname", "/c"],
    [{ pathname: "a/../../x" }, "pathname", ""],
    [{ search: "?ü&x='" }, "search", "%C3%BC&x=%27"], [{ hash: "#ü`" }, "hash", "%C3%BC%60"], [{ search: "\uD800" }, "search", "%EF%BF%BD"],
  ]) {
    let got;
    try { got = new URLPattern(init)[part]; } catch (e) { got = e instanceof TypeError ? "error" : String(e); }
    check(JSON.stringify(init) + "." + part, got, want);
  }
  const any = new URLPattern();
  const seen = (input, part, base) => any.exec(input, base)?.[part].input;
  check("inputs of a URL", [
    seen({ protocol: "HTTPS:", port: "443" }, "port"), seen({ protocol: "ws", port: "443" }, "port"), seen({ port: "x" }, "port"), seen({ protocol: "a b" }, "port"), seen({ hostname: "Ü" }, "hostname"),
    seen({ hostname: "[::1]" }, "hostname"), seen({ pathname: "b", baseURL: "https://u:p@a/x/y" }, "pathname"), seen({ pathname: "b", baseURL: "https://u:p@a/x/y" }, "password"),
    seen({ hostname: "b", baseURL: "https://u:p@a/x/y" }, "password"), seen({ protocol: "data", pathname: "a b" }, "pathname"), seen({ baseURL: "nope" }, "hash"), seen({ search: "?a", baseURL: "https://a/x" }, "pathname"),
    seen("https://a:81/x?y#z", "hash"), seen("/b", "pathname", "https://a/c"), seen("/b", "pathname"), seen("/b", "pathname", "nope"), seen("", "pathname", ""),
  ].map((x) => x === undefined ? "none" : x), ["", "443", "none", "none", "xn--tda", "[::1]", "/x/b", "p", "", "a b", "none", "/x", "z", "/b", "none", "none", "none"]);
}

function results() {
  const p = new URLPattern("https://*.example.com/:a/:b?", "https://x");
  const m = p.exec("/1", "https://s.example.com/?q#f");
  check("a result", m, {
    hash: { groups: { 0: "" }, input: "" }, hostname: { groups: { 0: "s" }, input: "s.example.com" }, inputs: ["/1", "https://s.example.com/?q#f"], password: { groups: { 0: "" }, input: "" },
    pathname: { groups: { a: "1", b: undefined }, input: "/1" }, port: { groups: {}, input: "" }, protocol: { groups: {}, input: "https" }, search: { groups: { 0: "" }, input: "" }, username: { groups: { 0: "" }, input: "" },
  });
  check("groups without a match", ["b" in m.pathname.groups, m.pathname.groups.b], [true, undefined]);
  check("no match", [p.exec("https://example.com/1"), p.test("https://s.example.com/1/2/3"), p.test()], [null, false, false]);
  check("all patterns", [new URLPattern().test(), new URLPattern().test(null), new URLPattern().exec({}).inputs], [true, true, [{}]]);
  const given = { search: 5, baseURL: "https://a", other: 1, hash: undefined };
  check("inputs", JSON.stringify(new URLPattern().exec(given).inputs), '[{"baseURL":"https://a","search":"5"}]');
  throws("a base beside an object", () => p.test({}, "https://a"), "TypeError");
  throws("a base beside an object", () => p.exec(undefined, "https://a"), "TypeError");
  check("an undefined base", p.test("https://a.example.com/1", undefined), true);
  check("a URL as input", [new URLPattern(new URL("https://a.example/b?c")).hostname, p.test(new URL("https://a.example.com/1"))], ["a.example", true]);
  class Mine extends URLPattern { get both() { return this.hostname + this.pathname; } }
  check("a subclass", [new Mine("https://a/b").both, new Mine("https://a/b") instanceof URLPattern], ["a/b", true]);
}

// https://webidl.spec.whatwg.org/#js-dictionary
function conversions() {
  const read = [];
  const spy = new Proxy({}, { get(_, name) { read.push(name); return undefined; } });
  new URLPattern(spy, { get ignoreCase() { read.push("ignoreCase"); return 0; } });
  check("the order of reading", read, ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username", "ignoreCase"]);
  throws("a getter that throws", () => new URLPattern({ get pathname() { throw new RangeError("mine"); } }), "RangeError: mine");
  throws("a text that throws", () => new URLPattern({ pathname: { toString() { throw new RangeError("mine"); } } }), "RangeError: mine");
  throws("a symbol in a member", () => new URLPattern({ pathname: Symbol() }), "TypeError");
  throws("a String object is a dictionary with a member search", () => new URLPattern(Object("https://a")), "TypeError: URLPattern: search");
  check("numbers are strings", new URLPattern({ port: 8080 }).port, "8080");
}

function hostile() {
  throws("a long pattern", () => new URLPattern({ pathname: "/".repeat(70000) }), "longer than 65536");
  throws("a long string", () => new URLPattern("https://a/" + "b".repeat(70000)), "longer than 65536");
  check("a long URL", new URLPattern({ pathname: "/*" }).test("https://a/" + "b".repeat(200000)), true);
  const many = new URLPattern({ pathname: "/*" + "/:a".repeat(0) + Array.from({ length: 2000 }, (_, i) => "/:g" + i + "?").join("") });
  check("many groups", Object.keys(many.exec({ pathname: "/" }).pathname.groups).length, 2001);
  throws("nested groups", () => new URLPattern({ pathname: "/(" + "(?:".repeat(20000) + "a" + ")".repeat(20000) + ")" }), "TypeError");
  check("open parentheses", (() => { try { new URLPattern("https://a/" + "(x(?".repeat(10000)); } catch (e) { return e.name; } })(), "TypeError");
  // Nothing that a script replaced is called.
  const poisoned = [RegExp.prototype.exec, Object.prototype.inputs, Array.prototype[Symbol.iterator]];
  RegExp.prototype.exec = () => { throw new Error("replaced exec"); };
  Object.defineProperty(Object.prototype, "inputs", { set() { throw new Error("replaced setter"); }, configurable: true });
  Array.prototype[Symbol.iterator] = () => { throw new Error("replaced iterator"); };
  let got;
  try { got = new URLPattern({ pathname: "/(a+)" }).exec("https://a/aa").inputs[0]; } catch (e) { got = String(e); }
  RegExp.prototype.exec = poisoned[0];
  delete Object.prototype.inputs;
  Array.prototype[Symbol.iterator] = poisoned[2];
  check("poisoned prototypes", got, "https://a/aa");
}
