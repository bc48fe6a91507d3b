import { check, throws } from "./check.js";
export default function () {
  const u = new URL("https://user:pa%20ss@EXAMPLE.com:8443/a/../b?q=1&q=2#frag");
  check("href", u.href, "https://user:pa%20ss@example.com:8443/b?q=1&q=2#frag");
  check("parts", [u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin],
    ["https:", "user", "pa%20ss", "example.com:8443", "example.com", "8443", "/b", "?q=1&q=2", "#frag", "https://example.com:8443"]);
  check("relative", String(new URL("../x?y", "http://h/a/b/c")), "http://h/a/x?y");
  check("default port", new URL("http://h:80/").href, "http://h/");
  check("idna", new URL("http://bücher.example").hostname, "xn--bcher-kva.example");
  check("ipv4", new URL("http://0x7f.1/").hostname, "127.0.0.1");
  check("opaque origin", new URL("data:text/plain,hi").origin, "null");
  throws("invalid", () => new URL("nope"), "TypeError: Invalid URL: nope");
  check("canParse", [URL.canParse("x:"), URL.canParse("nope"), URL.canParse("a", "http://h")], [true, false, true]);
  check("parse", [URL.parse("nope"), URL.parse("http://h").href], [null, "http://h/"]);
  check("the same searchParams", u.searchParams === u.searchParams, true);
  u.searchParams.append("z", "a b&");
  check("params write the URL", u.search, "?q=1&q=2&z=a+b%26");
  u.search = "?new=%2B1";
  check("search writes the params", [...u.searchParams], [["new", "+1"]]);
  u.pathname = "/ü"; u.hash = ""; u.port = "";
  check("setters", u.href, "https://user:pa%20ss@example.com/%C3%BC?new=%2B1");
  u.href = "http://other/?a=b";
  check("href setter", [u.host, u.searchParams.get("a")], ["other", "b"]);
  throws("href setter", () => { u.href = "::" }, "TypeError");
  check("JSON", JSON.stringify({ u }), '{"u":"http://other/?a=b"}');
  check("tag", Object.prototype.toString.call(u), "[object URL]");
  class Mine extends URL { get twice() { return this.host + this.host } }
  check("subclass", [new Mine("http://h").twice, new Mine("http://h") instanceof URL], ["hh", true]);
  throws("receiver", () => URL.prototype.toString.call({}), "Illegal invocation");
}
