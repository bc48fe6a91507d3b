// URL: https://url.spec.whatwg.org/#url-class
import { check, throws } from "./check.js";
const set = (href, name, value) => { const u = new URL(href); u[name] = value; return u.href; };
export default function () {
  throws("URL §6.1 constructor: needs new", () => URL("http://h"), "TypeError"); throws("URL §6.1 constructor: needs a URL", () => new URL(), "TypeError");
  throws("URL §6.1 constructor: a symbol is no text", () => new URL(Symbol()), "TypeError");
  for (const v of ["", "a", "//h", "http://", "http://a b", "http://h:99999", "http://[::g]", "http://1.2.3.256", "http://%zz", "http://a<b", "https://ex%41mple%00.com"]) throws("URL §6.1 constructor, step 2: " + v, () => new URL(v), "TypeError");
  throws("URL §6.1 constructor, step 1: the base fails", () => new URL("a", "b"), "TypeError"); throws("URL §4.4: the base has an opaque path", () => new URL("a", "mailto:x"), "TypeError");
  check("URL §6.1 constructor: a base of undefined is none, null is the text", [new URL("http://h", undefined).href, URL.canParse("a", null)], ["http://h/", false]);
  check("URL §6.1 constructor: any value is a text", new URL({ toString: () => "http://h/x" }, new URL("http://b")).href, "http://h/x");
  check("URL §6.1 parse(): null for a failure", [URL.parse("nope"), URL.parse("a", "b"), URL.parse("/x", "http://h").href, URL.parse("http://h") instanceof URL], [null, null, "http://h/x", true]);
  check("URL §6.1 canParse()", [URL.canParse("http://h"), URL.canParse("x"), URL.canParse("x", "http://h"), URL.canParse("http://h", "bad")], [true, false, true, false]);
  throws("URL §6.1 parse(): needs a URL", () => URL.parse(), "TypeError"); throws("URL §6.1 canParse(): needs a URL", () => URL.canParse(), "TypeError");
  // the parser
  for (const [text, base, want] of [
    ["  http://h/ ", undefined, "http://h/"], ["ht\ntp://h/\ta", undefined, "http://h/a"], ["HTTP://EX.com/%7Ea/../b/./c", undefined, "http://ex.com/b/c"], ["http://h/%2e%2E/x", undefined, "http://h/x"], ["http:\\\\h\\a", undefined, "http://h/a"], ["http:/h", undefined, "http://h/"],
    ["?q", "http://h/a/b?x#y", "http://h/a/b?q"], ["#f", "http://h/a?x", "http://h/a?x#f"], ["", "http://h/a?x#y", "http://h/a?x"], ["//g/x", "https://h/a", "https://g/x"], ["..", "http://h/a/b/c", "http://h/a/"], ["http:x", "http://h/a/b", "http://h/a/x"],
    ["http://h:80/", undefined, "http://h/"], ["https://h:443", undefined, "https://h/"], ["ws://h:80", undefined, "ws://h/"], ["http://h:443", undefined, "http://h:443/"], ["http://h:00081", undefined, "http://h:81/"],
    ["http://u:p@h", undefined, "http://u:p@h/"], ["http://u@:@h", undefined, "http://u%40:@h/".replace(":@", "@")], ["http://a b:c@h", undefined, "http://a%20b:c@h/"],
    ["http://0x7f000001", undefined, "http://127.0.0.1/"], ["http://017700000001", undefined, "http://127.0.0.1/"], ["http://1.1", undefined, "http://1.0.0.1/"], ["http://[1:0:0:0:0:0:0:1]", undefined, "http://[1::1]/"], ["http://[::ffff:1.2.3.4]", undefined, "http://[::ffff:102:304]/"],
    ["http://faß.de", undefined, "http://xn--fa-hia.de/"], ["http://ＥＸ.com", undefined, "http://ex.com/"], ["http://h/ü?ü#ü", undefined, "http://h/%C3%BC?%C3%BC#%C3%BC"], ["http://h/?'", undefined, "http://h/?%27"], ["foo://h/?'", undefined, "foo://h/?'"],
    ["mailto:a b", undefined, "mailto:a b"], ["foo:/a/../b", undefined, "foo:/b"], ["foo://H/A", undefined, "foo://H/A"], ["file:///C|/x", undefined, "file:///C:/x"], ["file://localhost/x", undefined, "file:///x"], ["javascript:1", undefined, "javascript:1"], ["web+demo:/.//x", undefined, "web+demo:/.//x"],
  ]) check("URL §4.4 basic URL parser: " + JSON.stringify([text, base]), URL.parse(text, base)?.href, want);
  // getters
  const u = new URL("https://us:pw@h.example:8080/a/b?q=1#f");
  check("URL §6.1 getters", [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash], ["https://us:pw@h.example:8080/a/b?q=1#f", "https://h.example:8080", "https:", "us", "pw", "h.example:8080", "h.example", "8080", "/a/b", "?q=1", "#f"]);
  const empty = new URL("http://h?#"); check("URL §6.1 search and hash: empty ones are \"\"", [empty.search, empty.hash, empty.href], ["", "", "http://h/?#"]);
  check("URL §4.7 origin", ["ftp://h:21/", "ws://h/", "file:///x", "data:x", "blob:https://h/id", "foo://h"].map((x) => new URL(x).origin), ["ftp://h", "ws://h", "null", "null", "https://h", "null"]);
  check("URL §6.1 toString, toJSON", [u.toString() === u.href, u.toJSON() === u.href, JSON.stringify([new URL("http://h")])], [true, true, '["http://h/"]']);
  throws("URL §6.1 origin: read only", () => { u.origin = "x"; }, "TypeError"); throws("URL §6.1: the receiver is checked", () => Object.getOwnPropertyDescriptor(URL.prototype, "href").get.call({}), "TypeError");
  // setters
  const h = "http://u:p@h:8080/a?b#c";
  for (const [name, value, want, from = h] of [
    ["protocol", "https", "https://u:p@h:8080/a?b#c"], ["protocol", "wss:rest", "wss://u:p@h:8080/a?b#c"], ["protocol", "foo", h], ["protocol", "file", h], ["protocol", "1x", h], ["protocol", "https", "https://h:8080/", "http://h:8080"], ["protocol", "http", "http://h/", "https://h:80"],
    ["username", "a b", "http://a%20b:p@h:8080/a?b#c"], ["username", "", "http://:p@h:8080/a?b#c"], ["username", "x", "file:///a", "file:///a"], ["password", ":@", "http://u:%3A%40@h:8080/a?b#c"], ["password", "", "http://u@h:8080/a?b#c"],
    ["host", "g:1", "http://u:p@g:1/a?b#c"], ["host", "g", "http://u:p@g:8080/a?b#c"], ["host", "g:80", "http://u:p@g/a?b#c"], ["host", "", h], ["host", "a b", h], ["host", "x", "mailto:a", "mailto:a"], ["hostname", "g", "http://u:p@g:8080/a?b#c"], ["hostname", "g:9", h], ["hostname", "g/x", "http://u:p@g:8080/a?b#c"],
    ["port", "90", "http://u:p@h:90/a?b#c"], ["port", "", "http://u:p@h/a?b#c"], ["port", "80", "http://u:p@h/a?b#c"], ["port", "9x", "http://u:p@h:9/a?b#c"], ["port", "x", h], ["port", "65536", h], ["port", 7, "http://u:p@h:7/a?b#c"],
    ["pathname", "x/../y z", "http://u:p@h:8080/y%20z?b#c"], ["pathname", "", "http://u:p@h:8080/?b#c"], ["pathname", "?#", "http://u:p@h:8080/%3F%23?b#c"], ["pathname", "x", "mailto:a", "mailto:a"],
    ["search", "x y", "http://u:p@h:8080/a?x%20y#c"], ["search", "?", "http://u:p@h:8080/a?#c".replace("?#", "?#")], ["search", "", "http://u:p@h:8080/a#c"], ["search", "#", "http://u:p@h:8080/a?%23#c"],
    ["hash", "x y", "http://u:p@h:8080/a?b#x%20y"], ["hash", "#", "http://u:p@h:8080/a?b#"], ["hash", "", "http://u:p@h:8080/a?b"],
    ["href", "https://n/", "https://n/"],
  ]) check(`URL §6.1 ${name} = ${JSON.stringify(value)} of ${from}`, set(from, name, value), want);
  throws("URL §6.1 href: a failure is a TypeError", () => set(h, "href", "nope"), "TypeError");
  const keep = new URL(h); try { keep.href = "nope"; } catch { /* expected */ } check("URL §6.1 href: nothing changes then", keep.href, h);
  const q = u.searchParams; u.href = "http://n/?z=1"; check("URL §6.1 href, steps 5 to 7: the query object follows", [u.searchParams === q, q.get("z")], [true, "1"]);
  throws("URL §6.1 searchParams: read only", () => { u.searchParams = 1; }, "TypeError");
}
