import { check, throws } from "./check.js";
import url, { fileURLToPath, pathToFileURL, URL as U, urlToHttpOptions } from "node:url";
const parts = (u) => [u.protocol, u.slashes, u.auth, u.host, u.port, u.hostname, u.hash, u.search, u.query, u.pathname, u.path, u.href];
export default function () {
  check("URL", [U === URL, url.URLSearchParams === URLSearchParams], [true, true]);
  check("parse", parts(url.parse("http://user:pa%20ss@Example.com:8080/p/a t?q=1 2&x='#h")), ["http:", true, "user:pa ss", "example.com:8080", "8080", "example.com", "#h", "?q=1%202&x=%27", "q=1%202&x=%27", "/p/a%20t", "/p/a%20t?q=1%202&x=%27", "http://user:pa%20ss@example.com:8080/p/a%20t?q=1%202&x=%27#h"]);
  check("relative", parts(url.parse("/a/b?x=1")), [null, null, null, null, null, null, null, "?x=1", "x=1", "/a/b", "/a/b?x=1", "/a/b?x=1"]);
  check("query", url.parse("/a?x=1&x=2", true).query, { x: ["1", "2"] }); check("mailto", parts(url.parse("mailto:a@b.c")), ["mailto:", null, "a", "b.c", null, "b.c", null, null, null, null, null, "mailto:a@b.c"]);
  check("slashes", url.parse("//host/path", false, true).host, "host");
  check("resolve", [url.resolve("http://a.com/b/c", "../d?e"), url.resolve("/one/two/three", "four"), url.resolve("http://example.com/", "/one"), url.resolve("http://example.com/one", "http://b.org/x"), url.resolve("http://a/b", "//c/d"), url.resolve("http://a/b?x", "#h"), url.resolve("http://a/b/", "?q=1")], ["http://a.com/d?e", "/one/two/four", "http://example.com/one", "http://b.org/x", "http://c/d", "http://a/b?x#h", "http://a/b/?q=1"]);
  check("format", [url.format({ protocol: "https", hostname: "x.y", port: 1, pathname: "p", query: { a: [1, 2] } }), url.format(new URL("http://u:p@x.y/#h"), { auth: false, fragment: false }), url.format({ pathname: "/a", search: "b" })], ["https://x.y:1/p?a=1&a=2", "http://x.y/", "/a?b"]);
  check("files", [fileURLToPath("file:///a%20b/c"), pathToFileURL("/a b?#%").href], ["/a b/c", "file:///a%20b%3F%23%25"]); throws("file", () => fileURLToPath("http://a/"), "scheme file");
  check("options", urlToHttpOptions(new URL("http://u:p%40@x.y:81/a?b#c")), { protocol: "http:", hostname: "x.y", hash: "#c", search: "?b", pathname: "/a", path: "/a?b", href: "http://u:p%40@x.y:81/a?b#c", port: 81, auth: "u:p@" });
  check("domain", [url.domainToASCII("español.com"), url.domainToUnicode("xn--espaol-zwa.com")], ["xn--espaol-zwa.com", "español.com"]);
}
