import { check, throws } from "./check.js";
import path, { join, resolve, posix, win32, sep } from "node:path";
import * as sub from "node:path/posix";
export default function () {
  check("identity", [posix === path, sub.default === path, sep, path.delimiter], [true, true, "/", ":"]);
  check("join", [join("a", "..", "b", "./c/"), join(""), join("/a", "../../b"), join("a", "", "b")], ["b/c/", ".", "/b", "a/b"]);
  check("resolve", [resolve("/a", "b", "../c"), resolve("x"), resolve("/a", "/b"), resolve("/..")], ["/a/c", "/x", "/b", "/"]);
  check("normalize", ["/a//b/./../c/", "", "../a/..", "./", "a/..", "/.."].map(path.normalize), ["/a/c/", ".", "..", "./", ".", "/"]);
  check("dirname", ["/a/b/", "a", "/a", "", "/", "a/b//c"].map(path.dirname), ["/a", ".", "/", ".", "/", "a/b/"]);
  check("basename", [path.basename("/a/b.html", ".html"), path.basename("b/"), path.basename(".html", ".html"), path.basename("/")], ["b", "b", "", ""]);
  check("extname", ["a.b.c", ".x", "a.", "a/.b/c", "..", "a.b/"].map(path.extname), [".c", "", ".", "", "", ".b"]);
  check("relative", [path.relative("/a/b/c", "/a/d"), path.relative("/a", "/a"), path.relative("/a", "/a/b")], ["../../d", "", "b"]);
  check("parse", path.parse("/home/u/f.tar.gz"), { root: "/", dir: "/home/u", base: "f.tar.gz", ext: ".gz", name: "f.tar" });
  check("format", [path.format({ dir: "/a", base: "b" }), path.format({ root: "/", name: "f", ext: "t" })], ["/a/b", "/f.t"]);
  check("isAbsolute", [path.isAbsolute("/a"), path.isAbsolute("a")], [true, false]);
  throws("type", () => path.join(1), 'The "path" argument must be of type string'); throws("win32", () => win32.join("a"), "node:path/win32: join is not available");
}
