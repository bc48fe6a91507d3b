// node:url. URL is the platform's; parse, resolve and format are the older ones of Node.
const { coded, invalidType, checkString } = require("internal/errors");
const querystring = require("querystring");
const punycode = require("punycode");

const slashed = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);

function Url() {
  for (const key of ["protocol", "slashes", "auth", "host", "port", "hostname", "hash", "search", "query", "pathname", "path", "href"]) this[key] = null;
}

function parse(text, withQuery, slashesDenoteHost) {
  if (text instanceof Url) return text;
  checkString(text, "url");
  const u = new Url();
  let rest = text.trim();
  // A backslash is a slash before the query.
  const cut = rest.search(/[?#]/);
  rest = cut < 0 ? rest.replace(/\\/g, "/") : rest.slice(0, cut).replace(/\\/g, "/") + rest.slice(cut);
  const scheme = /^[a-zA-Z][a-zA-Z0-9.+-]*:/.exec(rest);
  if (scheme) {
    u.protocol = scheme[0].toLowerCase();
    rest = rest.slice(scheme[0].length);
  }
  const double = rest.startsWith("//");
  if (double && (slashesDenoteHost || scheme || /^\/\/[^@/]+@[^@/]+/.test(rest)) && u.protocol !== "javascript:") {
    u.slashes = true;
    rest = rest.slice(2);
  }
  if (u.protocol !== "javascript:" && (u.slashes || (u.protocol && !slashed.has(u.protocol)))) {
    let end = rest.search(/[/?#]/);
    if (end < 0) end = rest.length;
    let host = rest.slice(0, end);
    rest = rest.slice(end);
    const at = host.lastIndexOf("@");
    if (at >= 0) {
      u.auth = querystring.unescape(host.slice(0, at));
      host = host.slice(at + 1);
    }
    const port = /:(\d*)$/.exec(host);
    if (port) {
      if (port[1] !== "") u.port = port[1];
      host = host.slice(0, -port[0].length);
    }
    if (/[\s<>"`{}|\\^']/.test(host)) {
      const bad = host.search(/[\s<>"`{}|\\^']/);
      rest = "/" + host.slice(bad) + rest;
      host = host.slice(0, bad);
    }
    u.hostname = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : punycode.toASCII(host.toLowerCase());
    if (u.hostname.length > 255) u.hostname = "";
    u.host = (host.startsWith("[") ? host.toLowerCase() : u.hostname) + (u.port ? `:${u.port}` : "");
    if (slashed.has(u.protocol) && rest !== "" && rest[0] !== "/" && rest[0] !== "?" && rest[0] !== "#") rest = "/" + rest;
  }
  if (u.protocol !== "javascript:") {
    const escapes = { "\t": "%09", "\n": "%0A", "\r": "%0D", " ": "%20", '"': "%22", "'": "%27", "<": "%3C", ">": "%3E", "\\": "%5C", "^": "%5E", "`": "%60", "{": "%7B", "|": "%7C", "}": "%7D" };
    rest = rest.replace(/[\t\n\r "'<>\\^`{|}]/g, (c) => escapes[c]);
  }
  const hash = rest.indexOf("#");
  if (hash >= 0) {
    u.hash = rest.slice(hash);
    rest = rest.slice(0, hash);
  }
  const query = rest.indexOf("?");
  if (query >= 0) {
    u.search = rest.slice(query);
    u.query = rest.slice(query + 1);
    rest = rest.slice(0, query);
    if (withQuery) u.query = querystring.parse(u.query);
  } else if (withQuery) {
    u.search = null;
    u.query = Object.create(null);
  }
  if (rest !== "") u.pathname = rest;
  if (slashed.has(u.protocol) && u.hostname && !u.pathname) u.pathname = "/";
  if (u.pathname || u.search) u.path = (u.pathname || "") + (u.search || "");
  u.href = u.format();
  return u;
}

Url.prototype.format = function () {
  let auth = this.auth ? querystring.escape(this.auth).replace(/%3A/i, ":") + "@" : "";
  let protocol = this.protocol || "", pathname = this.pathname || "", hash = this.hash || "", host = "";
  if (this.host) host = auth + this.host;
  else if (this.hostname) host = auth + (this.hostname.includes(":") && !this.hostname.startsWith("[") ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : "");
  const query = this.query !== null && typeof this.query === "object" ? querystring.stringify(this.query) : "";
  let search = this.search || (query && `?${query}`) || "";
  if (protocol && !protocol.endsWith(":")) protocol += ":";
  pathname = pathname.replace(/[?#]/g, (c) => encodeURIComponent(c));
  search = search.replace(/#/g, "%23");
  if (this.slashes || slashed.has(protocol)) {
    if (this.slashes || host) {
      if (pathname && pathname[0] !== "/") pathname = "/" + pathname;
      host = "//" + host;
    } else if (protocol === "file:" || protocol.startsWith("file")) {
      host = "//";
    }
  }
  if (hash && hash[0] !== "#") hash = "#" + hash;
  if (search && search[0] !== "?") search = "?" + search;
  return protocol + host + pathname + search + hash;
};
Url.prototype.parse = function (text, withQuery, slashes) { Object.assign(this, parse(text, withQuery, slashes)); return this; };
Url.prototype.resolve = function (to) { return resolve(this.href, to); };
Url.prototype.resolveObject = function (to) { return parse(resolve(this.href, typeof to === "string" ? to : to.href), false, true); };

function resolve(from, to) {
  const base = parse(from, false, true), target = parse(to, false, true);
  if (target.protocol && target.protocol !== base.protocol && !(slashed.has(target.protocol) && !target.slashes)) return target.href;
  if (target.protocol && target.slashes) return parse(normalized(target)).href;
  const out = new Url();
  Object.assign(out, base);
  out.hash = target.hash;
  if (target.href === "") return out.format();
  if (target.slashes && target.hostname) {
    Object.assign(out, target, { protocol: base.protocol });
    return normalized(out);
  }
  if (target.pathname) {
    const absolute = target.pathname[0] === "/";
    const dir = base.pathname ? base.pathname.slice(0, base.pathname.lastIndexOf("/") + 1) : base.host ? "/" : "";
    out.pathname = absolute ? target.pathname : dir + target.pathname;
    out.search = target.search;
    out.query = target.query;
  } else if (target.search !== null) {
    out.search = target.search;
    out.query = target.query;
  }
  return normalized(out);
}

function normalized(u) {
  if (u.pathname) {
    const absolute = u.pathname[0] === "/", parts = [];
    const all = u.pathname.split("/"), last = all[all.length - 1];
    for (const p of all) {
      if (p === ".") continue;
      if (p === "..") {
        if (parts.length > (absolute ? 1 : 0) && parts[parts.length - 1] !== "..") parts.pop();
        else if (!absolute) parts.push(p);
      } else {
        parts.push(p);
      }
    }
    u.pathname = parts.join("/") + ((last === "." || last === "..") && parts.length > 0 ? "/" : "");
    if (absolute && u.pathname[0] !== "/") u.pathname = "/" + u.pathname;
  }
  return u.format();
}

function format(u, options) {
  if (typeof u === "string") u = parse(u);
  else if (u === null || typeof u !== "object") throw invalidType("urlObject", ["Object", "string"], u);
  else if (u instanceof URL) {
    if (!options) return u.href;
    const copy = new URL(u.href);
    if (options.auth === false) copy.username = copy.password = "";
    if (options.fragment === false) copy.hash = "";
    if (options.search === false) copy.search = "";
    const text = copy.href;
    return options.unicode ? text.replace(copy.hostname, punycode.toUnicode(copy.hostname)) : text;
  }
  return Url.prototype.format.call(u);
}

function fileURLToPath(u) {
  if (typeof u === "string") u = new URL(u);
  else if (!(u instanceof URL)) throw invalidType("path", ["string", "URL"], u);
  if (u.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
  if (u.hostname !== "") throw coded(TypeError, "ERR_INVALID_FILE_URL_HOST", 'File URL host must be "localhost" or empty on linux');
  if (/%2f/i.test(u.pathname)) throw coded(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
  return decodeURIComponent(u.pathname);
}

function pathToFileURL(path) {
  const absolute = require("path").resolve(path) + (path.endsWith("/") && path !== "/" ? "/" : "");
  return new URL("file://" + absolute.replace(/[%\\\n\r\t?#]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")));
}

function urlToHttpOptions(u) {
  const out = { protocol: u.protocol, hostname: u.hostname.replace(/^\[|\]$/g, ""), hash: u.hash, search: u.search, pathname: u.pathname, path: `${u.pathname || ""}${u.search || ""}`, href: u.href };
  if (u.port !== "") out.port = Number(u.port);
  if (u.username || u.password) out.auth = `${decodeURIComponent(u.username)}:${decodeURIComponent(u.password)}`;
  return out;
}

function domainToASCII(domain) {
  try {
    return new URL(`ws://${domain}`).hostname;
  } catch {
    return "";
  }
}

module.exports = {
  Url, parse, format, resolve, resolveObject: (from, to) => parse(from, false, true).resolveObject(to), fileURLToPath, pathToFileURL, urlToHttpOptions,
  fileURLToPathBuffer: (u) => require("buffer").Buffer.from(fileURLToPath(u)),
  domainToASCII, domainToUnicode: (domain) => punycode.toUnicode(domainToASCII(domain)),
  get URL() { return URL; },
  get URLSearchParams() { return URLSearchParams; },
};
if (typeof globalThis.URLPattern === "function") module.exports.URLPattern = globalThis.URLPattern;
