// Errors of Node: an error has a code, which its stack shows.
function coded(Base, code, message) {
  const e = new Base(message);
  e.code = code;
  return e;
}

// unsupportedError is thrown where a module is used beyond what functions have.
function unsupportedError(module, name) {
  return coded(Error, "ERR_CS_UNSUPPORTED", `node:${module}: ${name} is not available in functions`);
}

// unsupported makes a function, or class, that throws at use.
function unsupported(module, name) {
  const f = function () { throw unsupportedError(module, name); };
  Object.defineProperty(f, "name", { value: name });
  return f;
}

function describe(value) {
  if (value == null) return ` Received ${value}`;
  if (typeof value === "function") return ` Received function ${value.name}`;
  if (typeof value === "object") {
    const name = value.constructor && value.constructor.name;
    return name ? ` Received an instance of ${name}` : " Received an object";
  }
  let text = typeof value === "string" ? `'${value}'` : typeof value === "bigint" ? `${value}n` : String(value);
  if (text.length > 28) text = text.slice(0, 25) + "...";
  return ` Received type ${typeof value} (${text})`;
}

function list(expected) {
  const types = [], classes = [], other = [];
  for (const e of [].concat(expected)) {
    if (/^(string|function|number|object|boolean|bigint|symbol|undefined|null)$/i.test(e)) types.push(e.toLowerCase());
    else if (/^[A-Z]/.test(e)) classes.push(e);
    else other.push(e);
  }
  const or = (a) => (a.length > 2 ? a.slice(0, -1).join(", ") + ", or " + a[a.length - 1] : a.join(" or "));
  const parts = [];
  if (types.length) parts.push((types.length > 1 ? "one of type " : "of type ") + or(types));
  if (classes.length) parts.push("an instance of " + or(classes));
  if (other.length) parts.push(or(other));
  return parts.join(" or ");
}

function invalidType(name, expected, value) {
  const what = /\s/.test(name) || name.endsWith(" argument") ? name : `"${name}" ${name.includes(".") ? "property" : "argument"}`;
  return coded(TypeError, "ERR_INVALID_ARG_TYPE", `The ${what} must be ${list(expected)}.${describe(value)}`);
}

function invalidValue(name, value, reason = "is invalid") {
  return coded(TypeError, "ERR_INVALID_ARG_VALUE", `The ${name.includes(".") ? "property" : "argument"} '${name}' ${reason}.${describe(value)}`);
}

function outOfRange(name, range, value) {
  return coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${range}.${` Received ${typeof value === "bigint" ? value + "n" : value}`}`);
}

function callback(f, name = "callback") {
  if (typeof f !== "function") throw invalidType(name, "function", f);
}

class AbortError extends Error {
  constructor(message = "The operation was aborted", options) {
    super(message, options);
    this.code = "ABORT_ERR";
    this.name = "AbortError";
  }
}

function checkString(value, name) {
  if (typeof value !== "string") throw invalidType(name, "string", value);
}

function checkNumber(value, name, min, max) {
  if (typeof value !== "number") throw invalidType(name, "number", value);
  if ((min !== undefined && value < min) || (max !== undefined && value > max) || value !== value) {
    throw outOfRange(name, `${min !== undefined ? `>= ${min}` : ""}${min !== undefined && max !== undefined ? " && " : ""}${max !== undefined ? `<= ${max}` : ""}`, value);
  }
}

function checkInteger(value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) {
  if (typeof value !== "number") throw invalidType(name, "number", value);
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
  if (value < min || value > max) throw outOfRange(name, `>= ${min} && <= ${max}`, value);
}

module.exports = { coded, unsupported, unsupportedError, invalidType, invalidValue, outOfRange, callback, AbortError, checkString, checkNumber, checkInteger };
