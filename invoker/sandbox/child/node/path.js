// POSIX paths (https://nodejs.org/api/path.html).
const { checkString, unsupported } = require("internal/errors");

// normal resolves "." and ".." among the parts of a path.
function normal(path, above) {
  const out = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") out.push(part);
    else if (out.length && out[out.length - 1] !== "..") out.pop();
    else if (above) out.push("..");
  }
  return out.join("/");
}

function resolve(...paths) {
  let path = "";
  for (let i = paths.length - 1; i >= 0; i--) {
    checkString(paths[i], `paths[${i}]`);
    if (paths[i] === "") continue;
    path = path === "" ? paths[i] : `${paths[i]}/${path}`;
    if (paths[i][0] === "/") break;
  }
  if (path[0] !== "/") path = `${require("process").cwd()}/${path}`;
  return "/" + normal(path, false);
}

function normalize(path) {
  checkString(path, "path");
  if (path === "") return ".";
  const absolute = path[0] === "/", trailing = path.endsWith("/");
  let out = normal(path, !absolute);
  if (out === "") {
    if (absolute) return "/";
    return trailing ? "./" : ".";
  }
  if (trailing) out += "/";
  return absolute ? "/" + out : out;
}

function isAbsolute(path) {
  checkString(path, "path");
  return path[0] === "/";
}

function join(...paths) {
  for (const p of paths) checkString(p, "path");
  const joined = paths.filter((p) => p !== "").join("/");
  return joined === "" ? "." : normalize(joined);
}

function relative(from, to) {
  checkString(from, "from");
  checkString(to, "to");
  from = resolve(from);
  to = resolve(to);
  if (from === to) return "";
  const a = from.split("/").filter(Boolean), b = to.split("/").filter(Boolean);
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) same++;
  return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
}

function withoutSlashes(path) {
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") end--;
  return path.slice(0, end);
}

function dirname(path) {
  checkString(path, "path");
  if (path === "") return ".";
  const trimmed = withoutSlashes(path);
  if (trimmed === "/") return trimmed;
  const at = trimmed.lastIndexOf("/");
  if (at < 0) return ".";
  if (at === 0) return "/";
  return at === 1 && trimmed[0] === "/" ? "//" : trimmed.slice(0, at);
}

function basename(path, suffix) {
  checkString(path, "path");
  if (suffix !== undefined) checkString(suffix, "suffix");
  const trimmed = withoutSlashes(path);
  const base = trimmed === "/" ? "" : trimmed.slice(trimmed.lastIndexOf("/") + 1);
  if (suffix && path === suffix) return "";
  return suffix && base !== suffix && base.endsWith(suffix) ? base.slice(0, -suffix.length) : base;
}

function extname(path) {
  checkString(path, "path");
  const base = basename(path), at = base.lastIndexOf(".");
  return at <= 0 || base === ".." ? "" : base.slice(at);
}

function parse(path) {
  checkString(path, "path");
  const root = path[0] === "/" ? "/" : "";
  const base = basename(path), ext = extname(path);
  const at = withoutSlashes(path).lastIndexOf("/");
  return { root, dir: at < 0 ? "" : at === 0 ? "/" : path.slice(0, at), base, ext, name: ext ? base.slice(0, -ext.length) : base };
}

function format(parts) {
  if (parts === null || typeof parts !== "object") throw require("internal/errors").invalidType("pathObject", "Object", parts);
  const ext = parts.ext ? (parts.ext[0] === "." ? parts.ext : "." + parts.ext) : "";
  const dir = parts.dir || parts.root, base = parts.base || `${parts.name || ""}${ext}`;
  if (!dir) return base;
  return dir === parts.root ? `${dir}${base}` : `${dir}/${base}`;
}

const posix = { sep: "/", delimiter: ":", resolve, normalize, isAbsolute, join, relative, dirname, basename, extname, parse, format, toNamespacedPath: (p) => p, _makeLong: (p) => p };
const win32 = { sep: "\\", delimiter: ";" };
for (const key of Object.keys(posix)) if (!(key in win32)) win32[key] = unsupported("path/win32", key);
posix.posix = win32.posix = posix;
posix.win32 = win32.win32 = win32;
module.exports = posix;
