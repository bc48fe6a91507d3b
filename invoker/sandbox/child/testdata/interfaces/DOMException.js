// DOMException: https://webidl.spec.whatwg.org/#idl-DOMException
import { check, throws } from "./check.js";
const codes = { IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5, NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15, TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25,
  EncodingError: 0, NotReadableError: 0, UnknownError: 0, ConstraintError: 0, DataError: 0, TransactionInactiveError: 0, ReadOnlyError: 0, VersionError: 0, OperationError: 0, NotAllowedError: 0, OptOutError: 0, DOMStringSizeError: 0, NoDataAllowedError: 0, ValidationError: 0, constructor: 0, toString: 0, __proto__: 0 };
export default function () {
  const e = new DOMException();
  check("Web IDL §4.3 constructor: the defaults", [e.name, e.message, e.code], ["Error", "", 0]);
  check("Web IDL §4.3 constructor, steps 1 and 2: name and message are strings", ((x) => [x.name, x.message])(new DOMException(1, null)), ["null", "1"]);
  check("Web IDL §4.3 constructor: undefined means the default", ((x) => [x.name, x.message])(new DOMException(undefined, undefined)), ["Error", ""]);
  throws("Web IDL §4.3 constructor: a symbol is no message", () => new DOMException(Symbol()), "TypeError");
  for (const [name, code] of [...Object.entries(codes), ["", 0], ["aborterror", 0]]) check("Web IDL §2.8.1: the code of " + name, new DOMException("", name).code, code);
  throws("Web IDL §4.3: name is read only", () => { e.name = "x"; }, "TypeError");
  for (const name of ["name", "message", "code"]) throws("Web IDL §4.3 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(DOMException.prototype, name).get.call(new Error()), "TypeError");
  check("Web IDL §3.14.1: DOMException inherits from Error, its constructor does not", [Object.getPrototypeOf(DOMException.prototype) === Error.prototype, Object.getPrototypeOf(DOMException) === Function.prototype, e instanceof Error], [true, true, true]);
  check("Web IDL §3.14.1: it has a stack", typeof e.stack, "string");
  check("Web IDL §3.14: no own name, message or code", ["name", "message", "code"].filter((n) => Object.hasOwn(e, n)), []);
  check("Web IDL §3.14: texts", [String(new DOMException("m", "AbortError")), String(e), Object.prototype.toString.call(e)], ["AbortError: m", "Error", "[object DOMException]"]);
  check("Web IDL §4.3: constants are in constructor and prototype", [DOMException.INDEX_SIZE_ERR, e.DATA_CLONE_ERR, Object.keys(DOMException).length], [1, 25, 25]);
  class Mine extends DOMException { constructor() { super("m", "TimeoutError"); } }
  check("Web IDL §4.3: a class of the script", ((x) => [x.code, x instanceof Mine, x.name])(new Mine()), [23, true, "TimeoutError"]);
  const c = structuredClone(new DOMException("m", "Own"));
  check("Web IDL §4.3 serialization steps: name and message", [c instanceof DOMException, c.name, c.message, c.code], [true, "Own", "m", 0]);
}
