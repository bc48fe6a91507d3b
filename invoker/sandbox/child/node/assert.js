const { inspect } = require("internal/inspect");
const { deepEqual } = require("internal/compare");
const { coded, invalidType } = require("internal/errors");

const phrases = {
  deepStrictEqual: "Expected values to be strictly deep-equal:", strictEqual: "Expected values to be strictly equal:",
  deepEqual: "Expected values to be loosely deep-equal:", equal: "Expected values to be loosely equal:",
  notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:', notStrictEqual: 'Expected "actual" to be strictly unequal to:',
  notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:', notEqual: 'Expected "actual" to be loosely unequal to:',
};

class AssertionError extends Error {
  constructor(options) {
    if (options === null || typeof options !== "object") throw invalidType("options", "Object", options);
    const { message, operator, actual, expected } = options;
    super(message != null ? String(message) : explain(operator, actual, expected));
    this.generatedMessage = message == null;
    this.code = "ERR_ASSERTION";
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
    Object.defineProperty(this, "name", { value: "AssertionError", enumerable: false, writable: true, configurable: true });
  }
  toString() { return `${this.name} [${this.code}]: ${this.message}`; }
}

function explain(operator, actual, expected) {
  const shown = (v) => inspect(v, { depth: 1000, maxArrayLength: Infinity, compact: 3, sorted: true });
  const phrase = phrases[operator];
  if (!phrase) return `${shown(actual)} ${operator} ${shown(expected)}`;
  if (operator.startsWith("not")) return `${phrase}\n\n${shown(expected)}`;
  const a = shown(actual), b = shown(expected);
  if (!a.includes("\n") && !b.includes("\n")) return operator === "equal" ? `${a} == ${b}` : `${phrase}\n\n${a} !== ${b}\n`;
  return `${phrase}\n\n+ actual\n- expected\n\n${a.replace(/^/gm, "+ ")}\n${b.replace(/^/gm, "- ")}`;
}

function fail(message, operator, actual, expected) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message, operator, actual, expected });
}

function assert(value, message) { ok(value, message, arguments.length); }

function ok(value, message, count = arguments.length) {
  if (value) return;
  if (count === 0) fail("No value argument passed to `assert.ok()`", "==", undefined, true);
  if (message instanceof Error) throw message;
  const e = new AssertionError({ message: message === undefined ? "The expression evaluated to a falsy value" : message, operator: "==", actual: value, expected: true });
  e.generatedMessage = message === undefined;
  throw e;
}

const same = (a, b) => a === b || (a !== a && b !== b);
const checks = {
  equal: (a, b) => a == b || (a !== a && b !== b), // eslint-disable-line eqeqeq
  notEqual: (a, b) => !(a == b || (a !== a && b !== b)), // eslint-disable-line eqeqeq
  strictEqual: (a, b) => Object.is(a, b),
  notStrictEqual: (a, b) => !Object.is(a, b),
  deepEqual: (a, b) => deepEqual(a, b, false),
  notDeepEqual: (a, b) => !deepEqual(a, b, false),
  deepStrictEqual: (a, b) => deepEqual(a, b, true),
  notDeepStrictEqual: (a, b) => !deepEqual(a, b, true),
  partialDeepStrictEqual: (a, b) => deepEqual(a, b, true, true),
};
for (const name of Object.keys(checks)) {
  assert[name] = function (actual, expected, message) {
    if (arguments.length < 2) throw coded(TypeError, "ERR_MISSING_ARGS", 'The "actual" and "expected" arguments must be specified');
    if (!checks[name](actual, expected)) fail(message, name, actual, expected);
  };
  Object.defineProperty(assert[name], "name", { value: name });
}

// matches reports whether an error is the expected one; it throws where expected says so.
function matches(error, expected, message, operator) {
  if (expected === undefined) return true;
  if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return true;
    if (Object.prototype.isPrototypeOf.call(Error, expected)) return false;
    return Reflect.apply(expected, {}, [error]) === true;
  }
  if (Object.prototype.toString.call(expected) === "[object RegExp]") return expected.test(String(error));
  if (typeof expected !== "object" || expected === null) throw invalidType("expected", ["Function", "Error", "RegExp", "Object"], expected);
  const keys = Object.keys(expected);
  if (expected instanceof Error) keys.push("name", "message");
  return keys.every((k) => (typeof error[k] === "string" && expected[k] instanceof RegExp ? expected[k].test(error[k]) : deepEqual(error[k], expected[k], true)));
}

function judge(thrown, error, expected, message, operator) {
  if (typeof expected === "string") [expected, message] = [undefined, expected];
  if (!thrown) {
    const name = expected && expected.name ? ` (${expected.name})` : "";
    fail(`Missing expected ${operator === "rejects" ? "rejection" : "exception"}${name}${message ? `: ${message}` : "."}`, operator, undefined, expected);
  }
  if (!matches(error, expected, message, operator)) {
    if (message === undefined && typeof expected === "function" && (expected === Error || Object.prototype.isPrototypeOf.call(Error, expected))) {
      message = `The error is expected to be an instance of "${expected.name}". Received "${error && error.constructor ? error.constructor.name : inspect(error)}"\n\nError message:\n\n${error && error.message}`;
    }
    fail(message, operator, error, expected);
  }
}

Object.assign(assert, {
  ok, AssertionError,
  fail(message) {
    if (message instanceof Error) throw message;
    throw new AssertionError({ message: message === undefined ? "Failed" : message, operator: "fail" });
  },
  ifError(value) {
    if (value === null || value === undefined) return;
    const e = new AssertionError({ message: `ifError got unwanted exception: ${value && value.message !== undefined ? value.message : inspect(value)}`, operator: "ifError", actual: value, expected: null });
    throw e;
  },
  throws(f, expected, message) {
    if (typeof f !== "function") throw invalidType("fn", "function", f);
    let thrown = false, error;
    try {
      f();
    } catch (e) {
      thrown = true;
      error = e;
    }
    judge(thrown, error, expected, message, "throws");
  },
  doesNotThrow(f, expected, message) {
    if (typeof f !== "function") throw invalidType("fn", "function", f);
    try {
      f();
    } catch (e) {
      if (typeof expected === "string") [expected, message] = [undefined, expected];
      if (!matches(e, expected)) throw e;
      fail(`Got unwanted exception${message ? `: ${message}` : "."}\nActual message: "${e && e.message}"`, "doesNotThrow", e, expected);
    }
  },
  async rejects(promise, expected, message) {
    let thrown = false, error;
    try {
      await (typeof promise === "function" ? promise() : promise);
    } catch (e) {
      thrown = true;
      error = e;
    }
    judge(thrown, error, expected, message, "rejects");
  },
  async doesNotReject(promise, expected, message) {
    try {
      await (typeof promise === "function" ? promise() : promise);
    } catch (e) {
      fail(`Got unwanted rejection${message ? `: ${message}` : "."}\nActual message: "${e && e.message}"`, "doesNotReject", e, expected);
    }
  },
  match(text, expression, message) {
    if (typeof text !== "string" || !expression.test(text)) fail(message !== undefined ? message : `The input did not match the regular expression ${expression}. Input:\n\n${inspect(text)}\n`, "match", text, expression);
  },
  doesNotMatch(text, expression, message) {
    if (typeof text === "string" && expression.test(text)) fail(message !== undefined ? message : `The input was expected to not match the regular expression ${expression}. Input:\n\n${inspect(text)}\n`, "doesNotMatch", text, expression);
  },
});

const strict = function strict(value, message) { ok(value, message, arguments.length); };
Object.assign(strict, assert, { equal: assert.strictEqual, notEqual: assert.notStrictEqual, deepEqual: assert.deepStrictEqual, notDeepEqual: assert.notDeepStrictEqual });
assert.strict = strict.strict = strict;
module.exports = assert;
