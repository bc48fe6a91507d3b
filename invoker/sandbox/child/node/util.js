const { inspect, format, formatWithOptions } = require("internal/inspect");
const { types } = require("internal/types");
const { coded, invalidType, callback } = require("internal/errors");

const promisified = Symbol.for("nodejs.util.promisify.custom");

function promisify(original) {
  if (typeof original !== "function") throw invalidType("original", "function", original);
  const own = original[promisified];
  if (own !== undefined) {
    if (typeof own !== "function") throw invalidType("util.promisify.custom", "function", own);
    return Object.defineProperty(own, promisified, { value: own, configurable: true });
  }
  const names = original[Symbol.for("nodejs.util.promisify.args")];
  function f(...args) {
    return new Promise((resolve, reject) => {
      Reflect.apply(original, this, [...args, (error, ...values) => {
        if (error) reject(error);
        else if (names && values.length > 1) resolve(Object.fromEntries(names.map((n, i) => [n, values[i]])));
        else resolve(values[0]);
      }]);
    });
  }
  Object.setPrototypeOf(f, Object.getPrototypeOf(original));
  Object.defineProperty(f, promisified, { value: f, configurable: true });
  for (const key of Reflect.ownKeys(original)) {
    const d = Object.getOwnPropertyDescriptor(original, key);
    if (key !== "prototype" && d.configurable) Object.defineProperty(f, key, d);
  }
  return f;
}
promisify.custom = promisified;

function callbackify(original) {
  if (typeof original !== "function") throw invalidType("original", "function", original);
  function f(...args) {
    const done = args.pop();
    callback(done, "last argument");
    const { nextTick } = require("process");
    Reflect.apply(original, this, args).then(
      (value) => nextTick(done, null, value),
      (reason) => {
        if (!reason) {
          const e = coded(Error, "ERR_FALSY_VALUE_REJECTION", "Promise was rejected with falsy value");
          e.reason = reason;
          reason = e;
        }
        nextTick(done, reason);
      });
  }
  Object.defineProperty(f, "name", { value: `${original.name}Callbackified` });
  Object.defineProperty(f, "length", { value: original.length + 1 });
  return f;
}

function inherits(ctor, parent) {
  if (typeof ctor !== "function") throw invalidType("ctor", "function", ctor);
  if (typeof parent !== "function") throw invalidType("superCtor", "function", parent);
  if (parent.prototype === undefined) throw invalidType("superCtor.prototype", "object", parent.prototype);
  Object.defineProperty(ctor, "super_", { value: parent, writable: true, configurable: true });
  Object.setPrototypeOf(ctor.prototype, parent.prototype);
}

const warned = new Set();
function deprecate(f, message, code) {
  let told = false;
  function deprecated(...args) {
    if (!told) {
      told = true;
      if (code === undefined || !warned.has(code)) {
        warned.add(code);
        require("process").emitWarning(message, "DeprecationWarning", code);
      }
    }
    return new.target ? Reflect.construct(f, args, new.target) : Reflect.apply(f, this, args);
  }
  Object.setPrototypeOf(deprecated, f);
  if (f.prototype) deprecated.prototype = f.prototype;
  return deprecated;
}

function debuglog(set, ready) {
  const enabled = new RegExp(`(^|,)(${String(set).replace(/[.+?^${}()|[\]\\]/g, "\\$&")}|\\*)(,|$)`, "i").test(require("process").env.NODE_DEBUG || "");
  const log = (...args) => { if (enabled) require("process").stderr.write(`${String(set).toUpperCase()} ${format(...args)}\n`); };
  Object.defineProperty(log, "enabled", { get: () => enabled });
  if (ready) ready(log);
  return log;
}

const stripVTControlCharacters = (text) => text.replace(/[\u001b\u009b][[\]()#;?]*(?:(?:(?:[a-zA-Z\d]*(?:;[-a-zA-Z\d/#&.:=?%@~_]*)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~]))/g, "");

function styleText(style, text, options) {
  for (const name of [].concat(style).reverse()) {
    const c = inspect.colors[name];
    if (!c) throw require("internal/errors").invalidValue("format", name);
    if (options && options.validateStream === false) text = `\u001b[${c[0]}m${text}\u001b[${c[1]}m`; // the log is no terminal
  }
  return text;
}

function parseArgs(config = {}) {
  const { args = [], options = {}, strict = true, allowPositionals = !strict, tokens: wantTokens = false, allowNegative = false } = config;
  const values = Object.create(null), positionals = [], tokens = [];
  const put = (name, value, index, rawName, inlineValue) => {
    const o = options[name];
    tokens.push({ kind: "option", name, rawName, index, value: typeof value === "boolean" ? undefined : value, inlineValue });
    if (strict && !o) throw coded(TypeError, "ERR_PARSE_ARGS_UNKNOWN_OPTION", `Unknown option '${rawName}'`);
    if (strict && o.type === "string" && typeof value !== "string") throw coded(TypeError, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${rawName} <value>' argument missing`);
    if (strict && o.type === "boolean" && typeof value !== "boolean") throw coded(TypeError, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${rawName}' does not take an argument`);
    if (o && o.multiple) (values[name] ||= []).push(value);
    else values[name] = value;
  };
  const byShort = (s) => Object.keys(options).find((k) => options[k].short === s) || s;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (arg === "--") {
      tokens.push({ kind: "option-terminator", index: i });
      positionals.push(...args.slice(i + 1));
      break;
    }
    if (arg.startsWith("--")) {
      const at = arg.indexOf("=", 3);
      let name = at < 0 ? arg.slice(2) : arg.slice(2, at);
      if (at >= 0) put(name, arg.slice(at + 1), i, `--${name}`, true);
      else if (allowNegative && name.startsWith("no-") && !options[name] && options[name.slice(3)]) put(name.slice(3), false, i, arg);
      else if (options[name] && options[name].type === "string") put(name, args[i + 1], i++, arg, false);
      else put(name, true, i, arg);
    } else if (arg.startsWith("-") && arg.length > 1) {
      for (let j = 1; j < arg.length; j++) {
        const name = byShort(arg[j]);
        if (options[name] && options[name].type === "string") {
          if (j + 1 < arg.length) put(name, arg.slice(j + 1), i, `-${arg[j]}`, true);
          else put(name, args[i + 1], i++, `-${arg[j]}`, false);
          break;
        }
        put(name, true, i, `-${arg[j]}`);
      }
    } else {
      if (!allowPositionals) throw coded(TypeError, "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL", `Unexpected argument '${arg}'. This command does not take positional arguments`);
      tokens.push({ kind: "positional", index: i, value: arg });
      positionals.push(arg);
    }
  }
  for (const k of Object.keys(options)) if (options[k].default !== undefined && !(k in values)) values[k] = options[k].default;
  return wantTokens ? { values, positionals, tokens } : { values, positionals };
}

function aborted(signal, resource) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
}

const errnoOf = () => require("os").constants.errno;

function getCallSites(count) {
  const sites = require("internal/callsites").frames().filter((f) => f[1] !== "node:util").slice(0, typeof count === "number" ? count : 10);
  return sites.map(([functionName, scriptName, lineNumber, columnNumber]) => ({ functionName, scriptName, scriptId: "0", lineNumber, columnNumber, column: columnNumber }));
}

module.exports = {
  inspect, getCallSites, getCallSite: getCallSites, format, formatWithOptions, promisify, callbackify, inherits, deprecate, debuglog, debug: debuglog, types, styleText, stripVTControlCharacters, parseArgs, aborted,
  isDeepStrictEqual: (a, b, options) => require("internal/compare").deepEqual(a, b, true),
  toUSVString: (text) => require("internal/views").usv(text),
  getSystemErrorName: (n) => Object.keys(errnoOf()).find((k) => errnoOf()[k] === -n),
  getSystemErrorMap: () => new Map(Object.entries(errnoOf()).map(([k, n]) => [-n, [k, k]])),
  _extend: (target, source) => (source !== null && typeof source === "object" ? Object.assign(target, source) : target),
  isArray: Array.isArray,
  isBoolean: (v) => typeof v === "boolean", isNull: (v) => v === null, isNullOrUndefined: (v) => v == null, isNumber: (v) => typeof v === "number",
  isString: (v) => typeof v === "string", isSymbol: (v) => typeof v === "symbol", isUndefined: (v) => v === undefined,
  isObject: (v) => v !== null && typeof v === "object", isFunction: (v) => typeof v === "function", isPrimitive: (v) => v === null || (typeof v !== "object" && typeof v !== "function"),
  isRegExp: types.isRegExp, isDate: types.isDate, isError: (v) => types.isNativeError(v) || v instanceof Error, isBuffer: (v) => require("buffer").Buffer.isBuffer(v),
  log: (...args) => console.log(...args),
  get TextEncoder() { return TextEncoder; },
  get TextDecoder() { return TextDecoder; },
};
