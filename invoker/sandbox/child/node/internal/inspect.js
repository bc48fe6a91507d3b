// util.inspect: a value as a reader of logs likes it.
const { types, promiseState, kindOf } = require("internal/types");
const { coded, invalidType } = require("internal/errors");
const custom = Symbol.for("nodejs.util.inspect.custom");

const defaults = {
  showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100,
  maxStringLength: 10000, breakLength: 128, compact: 3, sorted: false, getters: false, numericSeparator: false,
};
const colors = {
  reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28], strikethrough: [9, 29],
  black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39],
  redBright: [91, 39], greenBright: [92, 39], yellowBright: [93, 39], blueBright: [94, 39], magentaBright: [95, 39], cyanBright: [96, 39], whiteBright: [97, 39],
  bgBlack: [40, 49], bgRed: [41, 49], bgGreen: [42, 49], bgYellow: [43, 49], bgBlue: [44, 49], bgMagenta: [45, 49], bgCyan: [46, 49], bgWhite: [47, 49],
};
const styles = { special: "cyan", number: "yellow", bigint: "yellow", boolean: "yellow", undefined: "grey", null: "bold", string: "green", symbol: "green", date: "magenta", regexp: "red", module: "underline" };

function inspect(value, options, ...legacy) {
  const ctx = { ...defaults, breakLength: 80, seen: [], indent: 0, circular: new Map(), budget: 0 };
  if (typeof options === "boolean") {
    ctx.showHidden = options;
    if (legacy[0] !== undefined) ctx.depth = legacy[0];
    if (legacy[1] !== undefined) ctx.colors = legacy[1];
  } else if (options) {
    Object.assign(ctx, options);
    ctx.userOptions = options;
  }
  if (ctx.maxArrayLength === null) ctx.maxArrayLength = Infinity;
  if (ctx.maxStringLength === null) ctx.maxStringLength = Infinity;
  ctx.stylize = ctx.colors
    ? (text, style) => { const c = colors[styles[style]]; return c ? `\u001b[${c[0]}m${text}\u001b[${c[1]}m` : text; }
    : (text) => text;
  return show(ctx, value, 0, true);
}

function quote(text) {
  let mark = "'";
  if (text.includes("'")) {
    if (!text.includes('"')) mark = '"';
    else if (!text.includes("`") && !text.includes("${")) mark = "`";
  }
  const escapes = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\" };
  const body = text.replace(/[\0-\x1f\x7f-\x9f\\'"`]/g, (c) => {
    if (escapes[c]) return escapes[c];
    if (c === mark) return "\\" + c;
    if (c === "'" || c === '"' || c === "`") return c;
    return "\\x" + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
  });
  return mark + body + mark;
}

function showNumber(ctx, n) { return ctx.stylize(Object.is(n, -0) ? "-0" : String(n), "number"); }

function primitive(ctx, value, typed) {
  switch (typeof value) {
    case "string": {
      let text = value, rest = "";
      if (text.length > ctx.maxStringLength) {
        const n = text.length - ctx.maxStringLength;
        text = text.slice(0, ctx.maxStringLength);
        rest = `... ${n} more character${n > 1 ? "s" : ""}`;
      }
      if (ctx.compact !== true && text.length > 16 && text.length > ctx.breakLength - ctx.indent - 4 && text.includes("\n")) {
        return text.split(/(?<=\n)/).map((line) => ctx.stylize(quote(line), "string")).join(` +\n${" ".repeat(ctx.indent + 2)}`) + rest;
      }
      return ctx.stylize(quote(text), "string") + rest;
    }
    case "number": return showNumber(ctx, value);
    case "bigint": return ctx.stylize(`${value}n`, "bigint");
    case "boolean": return ctx.stylize(String(value), "boolean");
    case "undefined": return ctx.stylize("undefined", "undefined");
    case "symbol": return ctx.stylize(String(value), "symbol");
  }
  return String(value);
}

function show(ctx, value, depth, typed) {
  if (value === null) return ctx.stylize("null", "null");
  if (typeof value !== "object" && typeof value !== "function") return primitive(ctx, value);
  if (ctx.customInspect) {
    const f = value[custom];
    if (typeof f === "function" && f !== inspect && !(value.constructor && value.constructor.prototype === value)) {
      const left = ctx.depth === null ? null : ctx.depth - depth;
      const { seen, indent, circular, budget, userOptions, ...own } = ctx;
      const out = f.call(value, left, { ...own, ...userOptions, depth: left }, inspect);
      if (out !== value) {
        if (typeof out !== "object" || out === null) return String(out).replace(/\n/g, `\n${" ".repeat(ctx.indent)}`);
        return show(ctx, out, depth);
      }
    }
  }
  if (ctx.seen.includes(value)) {
    let index = ctx.circular.get(value);
    if (index === undefined) ctx.circular.set(value, (index = ctx.circular.size + 1));
    return ctx.stylize(`[Circular *${index}]`, "special");
  }
  return complex(ctx, value, depth);
}

const boxes = ["Number", "String", "Boolean", "Symbol", "BigInt"];

// className returns the name of the constructor, null without one.
function className(value) {
  for (let o = value; o !== null; o = Object.getPrototypeOf(o)) {
    const d = Object.getOwnPropertyDescriptor(o, "constructor");
    if (d && typeof d.value === "function" && d.value.name !== "" && (value instanceof d.value || o === value)) return d.value.name;
  }
  return null;
}

function prefix(name, tag, fallback, size = "") {
  if (name === null) return `[${fallback}${size}: null prototype] ${tag && tag !== fallback ? `[${tag}] ` : ""}`;
  return `${name}${size} ${tag && tag !== name ? `[${tag}] ` : ""}`;
}

function ownKeys(ctx, value) {
  if (ctx.showHidden) return Reflect.ownKeys(value);
  const keys = Object.keys(value);
  for (const s of Object.getOwnPropertySymbols(value)) if (Object.prototype.propertyIsEnumerable.call(value, s)) keys.push(s);
  return keys;
}

function complex(ctx, value, depth) {
  const name = className(value), kind = kindOf(value);
  let tag = "";
  try {
    const t = value[Symbol.toStringTag];
    if (typeof t === "string" && t !== "") tag = t;
  } catch { /* a getter may throw */ }
  let keys, open, close = "}", items = () => [], base = "", plain = false, list = false;
  const notIndex = (k) => typeof k === "symbol" || !/^(0|[1-9]\d*)$/.test(k);
  if (Array.isArray(value)) {
    keys = ownKeys(ctx, value).filter((k) => notIndex(k) && (ctx.showHidden || k !== "length"));
    open = (name !== "Array" || tag ? prefix(name, tag, "Array", `(${value.length})`) : "") + "[";
    close = "]";
    list = true;
    if (value.length === 0 && keys.length === 0) return `${open}]`;
    items = () => elements(ctx, value, depth);
  } else if (kind === "Set") {
    keys = ownKeys(ctx, value);
    open = `${prefix(name, tag, "Set", `(${sizeOf(Set, value)})`)}{`;
    items = () => limited(ctx, [...Set.prototype.values.call(value)], (v) => show(ctx, v, depth + 1));
    if (sizeOf(Set, value) === 0 && keys.length === 0) return `${open}}`;
  } else if (kind === "Map") {
    keys = ownKeys(ctx, value);
    open = `${prefix(name, tag, "Map", `(${sizeOf(Map, value)})`)}{`;
    items = () => limited(ctx, [...Map.prototype.entries.call(value)], ([k, v]) => `${show(ctx, k, depth + 1)} => ${show(ctx, v, depth + 1)}`);
    if (sizeOf(Map, value) === 0 && keys.length === 0) return `${open}}`;
  } else if (ArrayBuffer.isView(value) && types.isTypedArray(value)) {
    keys = ownKeys(ctx, value).filter(notIndex);
    open = `${prefix(name, tag === name || tag === "Uint8Array" ? "" : tag, tag, `(${value.length})`)}[`;
    close = "]";
    list = true;
    if (value.length === 0 && keys.length === 0) return `${open}]`;
    items = () => limited(ctx, Array.from(value), (v) => primitive(ctx, v));
  } else if (tag === "Map Iterator" || tag === "Set Iterator") {
    keys = ownKeys(ctx, value);
    open = `[${tag}] {`;
  } else {
    keys = ownKeys(ctx, value);
    open = "{";
    plain = true;
    if (typeof value === "function") {
      base = functionBase(value, name, tag);
    } else if (kind === "RegExp") {
      base = ctx.stylize(RegExp.prototype.toString.call(value), "regexp");
    } else if (kind === "Date") {
      base = ctx.stylize(isNaN(value.getTime()) ? "Invalid Date" : value.toISOString(), "date");
    } else if (kind === "Error" || value instanceof Error) {
      base = errorBase(ctx, value, keys);
      if (value.cause !== undefined && Object.prototype.hasOwnProperty.call(value, "cause") && !keys.includes("cause")) keys.push("cause");
      if (Array.isArray(value.errors) && !keys.includes("errors")) keys.push("errors");
    } else if (boxes.includes(kind)) {
      if (kind === "String") keys = keys.filter(notIndex);
      base = `[${kind}${name !== kind && name !== null ? ` (${name})` : ""}: ${primitive({ ...ctx, stylize: (s) => s }, value.valueOf())}]`;
    } else if (kind === "Promise") {
      open = `${prefix(name, tag, "Promise")}{`;
      plain = false;
      const [state, result] = promiseState(value);
      items = () => [state === "pending" ? ctx.stylize("<pending>", "special") : (state === "rejected" ? ctx.stylize("<rejected>", "special") + " " : "") + show(ctx, result, depth + 1)];
    } else if (types.isWeakSet(value) || types.isWeakMap(value)) {
      open = `${prefix(name, tag, "WeakMap")}{`;
      plain = false;
      items = () => [ctx.stylize("<items unknown>", "special")];
    } else if (kind === "ArrayBuffer") {
      open = `${prefix(name, tag, "ArrayBuffer")}{`;
      plain = false;
      items = () => [
        `[Uint8Contents]: <${[...new Uint8Array(value).subarray(0, 50)].map((b) => b.toString(16).padStart(2, "0")).join(" ")}${value.byteLength > 50 ? ` ... ${value.byteLength - 50} more bytes` : ""}>`,
        `byteLength: ${showNumber(ctx, value.byteLength)}`,
      ];
    } else if (types.isDataView(value)) {
      open = `${prefix(name, tag, "DataView")}{`;
      plain = false;
      items = () => ["byteLength", "byteOffset", "buffer"].map((k) => `${k}: ${show(ctx, value[k], depth + 1)}`);
    } else if (types.isArgumentsObject(value)) {
      open = "[Arguments] {";
      plain = false;
    } else {
      if (name !== "Object" || tag) open = `${prefix(name, tag, "Object")}{`;
      if (keys.length === 0) return `${open}}`;
    }
    if (plain && base !== "") {
      if (keys.length === 0) return base;
    }
  }
  if (ctx.depth !== null && depth > ctx.depth) {
    if (base !== "") return base;
    return ctx.stylize(`[${Array.isArray(value) ? "Array" : name === null ? "Object: null prototype" : tag && tag !== name ? `${name} [${tag}]` : name}]`, "special");
  }
  ctx.seen.push(value);
  ctx.current = depth;
  let output;
  try {
    output = items();
    const members = keys.map((k) => property(ctx, value, k, depth, list));
    if (ctx.sorted) members.sort(ctx.sorted === true ? undefined : ctx.sorted);
    output = output.concat(members);
  } finally {
    ctx.seen.pop();
  }
  const index = ctx.circular.get(value);
  if (index !== undefined) {
    const ref = ctx.stylize(`<ref *${index}>`, "special");
    if (base !== "") base = `${ref} ${base}`;
    else open = `${ref} ${open}`;
  }
  return layout(ctx, output, base, open, close, list, depth);
}

const sizeOf = (C, v) => Object.getOwnPropertyDescriptor(C.prototype, "size").get.call(v);

function functionBase(f, name, tag) {
  const source = Function.prototype.toString.call(f);
  if (/^class\b/.test(source)) {
    const parent = Object.getPrototypeOf(f);
    return `[class ${f.name || "(anonymous)"}${typeof parent === "function" && parent.name ? ` extends ${parent.name}` : ""}]`;
  }
  const kind = types.isGeneratorFunction(f) ? (types.isAsyncFunction(f) ? "AsyncGeneratorFunction" : "GeneratorFunction") : types.isAsyncFunction(f) ? "AsyncFunction" : "Function";
  let out = `[${kind}${f.name ? `: ${f.name}` : " (anonymous)"}]`;
  if (name === null) out = `[${kind} (null prototype)${f.name ? `: ${f.name}` : " (anonymous)"}]`;
  return tag && tag !== kind ? `${out} [${tag}]` : out;
}

function errorBase(ctx, error, keys) {
  let stack;
  try {
    stack = typeof error.stack === "string" && error.stack !== "" ? error.stack : Error.prototype.toString.call(error);
  } catch {
    stack = "[Error]";
  }
  for (const k of ["name", "message", "stack"]) {
    const at = keys.indexOf(k);
    if (at >= 0 && (k !== "name" || stack.includes(error.name)) && (k !== "message" || stack.includes(error.message))) keys.splice(at, 1);
  }
  stack = stack.replace(/\n\s*at .*bundle\.js:.*$/gm, "").replace(/^\tat (.*?)(?:\(\d+\))?(\)?)$/gm, "    at $1$2").trimEnd();
  const head = stack.indexOf("\n    at");
  if (head < 0) stack = `[${stack}]`;
  if (ctx.indent !== 0) stack = stack.replace(/\n/g, `\n${" ".repeat(ctx.indent)}`);
  return stack;
}

function limited(ctx, values, one) {
  const n = Math.min(Math.max(0, ctx.maxArrayLength), values.length);
  ctx.indent += 2;
  const out = values.slice(0, n).map(one);
  ctx.indent -= 2;
  if (values.length > n) out.push(more(values.length - n));
  return out;
}

const more = (n) => `... ${n} more item${n > 1 ? "s" : ""}`;

function elements(ctx, array, depth) {
  const out = [];
  for (let i = 0; i < array.length && out.length < ctx.maxArrayLength; i++) {
    if (i in array) {
      out.push(property(ctx, array, i, depth, true, true));
      continue;
    }
    let n = 0;
    while (i < array.length && !(i in array)) { i++; n++; }
    i--;
    out.push(ctx.stylize(`<${n} empty item${n > 1 ? "s" : ""}>`, "undefined"));
  }
  if (array.length > out.length && out.length >= ctx.maxArrayLength) out.push(more(array.length - out.length));
  return out;
}

function property(ctx, value, key, depth, list, element) {
  const d = Object.getOwnPropertyDescriptor(value, key) || { value: value[key], enumerable: true };
  let text;
  if (d.get !== undefined) {
    const label = d.set !== undefined ? "[Getter/Setter]" : "[Getter]";
    text = ctx.stylize(label, "special");
    if (ctx.getters === true || (ctx.getters === "get" && d.set === undefined) || (ctx.getters === "set" && d.set !== undefined)) {
      try {
        text = `${ctx.stylize(label.slice(0, -1) + ":", "special")} ${show(ctx, d.get.call(value), depth + 1)}]`;
      } catch (e) {
        text = `${label.slice(0, -1)}: <Inspection threw (${e.message})>]`;
      }
    }
  } else if (d.set !== undefined) {
    text = ctx.stylize("[Setter]", "special");
  } else {
    const shift = element || ctx.compact !== true || list ? 2 : 3;
    ctx.indent += shift;
    text = show(ctx, d.value, depth + 1);
    ctx.indent -= shift;
  }
  if (element) return text;
  let name;
  if (typeof key === "symbol") name = `[${ctx.stylize(String(key), "symbol")}]`;
  else if (key === "__proto__") name = "['__proto__']";
  else if (!d.enumerable) name = `[${key}]`;
  else name = /^[a-zA-Z_][a-zA-Z_0-9]*$/.test(key) ? ctx.stylize(key, "name") : ctx.stylize(quote(key), "string");
  return `${name}: ${text}`;
}

// layout joins the parts on one line if they are short and nest little, else one a line.
// Many short elements of a list stand in columns.
function layout(ctx, output, base, open, close, list, depth) {
  const start = base !== "" ? `${base} ${open}` : open;
  if (ctx.compact === true) return `${start} ${output.join(", ")} ${close}`;
  const entries = output.length;
  if (list && ctx.compact >= 1 && entries > 6) output = columns(ctx, output);
  if (entries === output.length && ctx.current - depth < ctx.compact) {
    const length = output.reduce((n, s) => n + s.length, 2 * output.length + ctx.indent + start.length + 10);
    if (length <= ctx.breakLength && !start.includes("\n") && !output.some((s) => s.includes("\n"))) return `${start} ${output.join(", ")} ${close}`;
  }
  const indent = `\n${" ".repeat(ctx.indent)}`;
  return `${start}${indent}  ${output.join(`,${indent}  `)}${indent}${close}`;
}

function columns(ctx, output) {
  const rest = /^\.\.\. \d+ more items?$/.test(output[output.length - 1]) ? [output[output.length - 1]] : [];
  const cells = output.slice(0, output.length - rest.length);
  if (cells.some((s) => s.includes("\n"))) return output;
  const sizes = cells.map((s) => s.length + 2), widest = Math.max(...sizes), total = sizes.reduce((a, b) => a + b, 0);
  if (widest * 3 + ctx.indent >= ctx.breakLength || (total / widest <= 5 && widest - 2 > 6)) return output;
  const biased = Math.max(widest - 3 - Math.sqrt(widest - total / output.length), 1);
  const count = Math.min(Math.round(Math.sqrt(2.5 * biased * cells.length) / biased), Math.floor((ctx.breakLength - ctx.indent) / widest), ctx.compact * 4, 15);
  if (count <= 1) return output;
  const widths = [];
  for (let c = 0; c < count; c++) widths.push(sizes.reduce((w, size, i) => (i % count === c ? Math.max(w, size) : w), 0));
  const right = cells.every((s) => /^-?[\d.]+(e[+-]\d+)?n?$/.test(s));
  const rows = [];
  for (let i = 0; i < cells.length; i += count) {
    const row = cells.slice(i, i + count), last = row.length - 1;
    rows.push(row.map((s, j) => {
      if (right) return j < last ? `${s}, `.padStart(widths[j]) : s.padStart(widths[j] - 2);
      return j < last ? `${s}, `.padEnd(widths[j]) : s;
    }).join(""));
  }
  return rows.concat(rest);
}

function formatWithOptions(options, ...args) {
  if (typeof options !== "object" || options === null) throw invalidType("inspectOptions", "object", options);
  let at = 0, out = "";
  if (typeof args[0] === "string") {
    at = 1;
    out = args.length === 1 ? args[0] : args[0].replace(/%[sdifjoOc%]/g, (verb) => {
      if (verb === "%%") return "%";
      if (at >= args.length) return verb;
      const v = args[at++];
      switch (verb) {
        case "%s":
          if (typeof v === "number") return Object.is(v, -0) ? "-0" : String(v);
          if (typeof v === "bigint") return `${v}n`;
          if (typeof v !== "object" || v === null) return String(v);
          if (typeof v.toString === "function" && v.toString !== Object.prototype.toString && v.toString !== Error.prototype.toString && v.toString !== Array.prototype.toString && !types.isDate(v)) return String(v);
          if (v instanceof Error && v.toString !== Object.prototype.toString) return String(v);
          return inspect(v, { ...options, depth: 0, colors: false, compact: 3 });
        case "%d": return typeof v === "bigint" ? `${v}n` : typeof v === "symbol" || typeof v === "object" ? "NaN" : String(Number(v));
        case "%i": return typeof v === "bigint" ? `${v}n` : typeof v === "symbol" || typeof v === "object" ? "NaN" : String(parseInt(v));
        case "%f": return typeof v === "symbol" ? "NaN" : String(parseFloat(v));
        case "%j":
          try {
            return JSON.stringify(v);
          } catch (e) {
            if (/circular/i.test(e.message)) return "[Circular]";
            throw e;
          }
        case "%o": return inspect(v, { ...options, showHidden: true, showProxy: true, depth: 4 });
        case "%O": return inspect(v, options);
      }
      return "";
    });
  }
  for (let first = at === 0; at < args.length; at++, first = false) {
    out += (first ? "" : " ") + (typeof args[at] === "string" ? args[at] : inspect(args[at], options));
  }
  return out;
}

inspect.custom = custom;
inspect.colors = colors;
inspect.styles = styles;
inspect.defaultOptions = defaults;
module.exports = { inspect, formatWithOptions, format: (...args) => formatWithOptions({}, ...args) };
