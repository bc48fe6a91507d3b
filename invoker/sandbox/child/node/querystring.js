const { Buffer } = require("buffer");

// unescapeBuffer decodes percent-encoded text, and leaves what is wrong.
function unescapeBuffer(text) {
  const out = [];
  const bytes = Buffer.from(String(text));
  for (let i = 0; i < bytes.length; i++) {
    const digits = bytes[i] === 37 ? bytes.latin1Slice(i + 1, i + 3) : "";
    if (/^[0-9a-fA-F]{2}$/.test(digits)) {
      out.push(parseInt(digits, 16));
      i += 2;
    } else {
      out.push(bytes[i]);
    }
  }
  return Buffer.from(out);
}

function unescape(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return unescapeBuffer(text).toString();
  }
}

const escape = (text) => encodeURIComponent(typeof text === "object" ? String(text) : text);

function primitive(v) {
  switch (typeof v) {
    case "string": return v;
    case "number": return isFinite(v) ? String(v) : "";
    case "bigint": case "boolean": return String(v);
  }
  return "";
}

function stringify(obj, sep, eq, options) {
  sep = sep || "&";
  eq = eq || "=";
  const encode = (options && options.encodeURIComponent) || module.exports.escape;
  if (obj === null || typeof obj !== "object") return "";
  const parts = [];
  for (const key of Object.keys(obj)) {
    const name = encode(primitive(key)) + eq;
    if (Array.isArray(obj[key])) for (const v of obj[key]) parts.push(name + encode(primitive(v)));
    else parts.push(name + encode(primitive(obj[key])));
  }
  return parts.join(sep);
}

function parse(text, sep, eq, options) {
  const out = Object.create(null);
  if (typeof text !== "string" || text === "") return out;
  sep = sep || "&";
  eq = eq || "=";
  const most = options && typeof options.maxKeys === "number" ? options.maxKeys : 1000;
  const decoder = (options && options.decodeURIComponent) || module.exports.unescape;
  const decode = (s) => {
    try {
      return decoder(s);
    } catch {
      return unescapeBuffer(s).toString();
    }
  };
  let parts = text.split(sep);
  if (most > 0) parts = parts.slice(0, most);
  for (const part of parts) {
    if (part === "") continue;
    const plain = part.replace(/\+/g, " ");
    const at = plain.indexOf(eq);
    const key = decode(at < 0 ? plain : plain.slice(0, at)), value = at < 0 ? "" : decode(plain.slice(at + eq.length));
    if (!(key in out)) out[key] = value;
    else if (Array.isArray(out[key])) out[key].push(value);
    else out[key] = [out[key], value];
  }
  return out;
}

module.exports = { parse, stringify, escape, unescape, unescapeBuffer, decode: parse, encode: stringify };
