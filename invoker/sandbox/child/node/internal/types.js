// What kind of object a value is, also of objects that pretend to be another.
const tag = (v) => Object.prototype.toString.call(v);
const getter = (of, name) => Object.getOwnPropertyDescriptor(of, name).get;
const typedTag = getter(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
const object = (v) => typeof v === "object" && v !== null;

// branded makes a test that calls a method which only works on that kind of object.
const branded = (f, ...args) => (v) => {
  if (!object(v)) return false;
  try {
    f.apply(v, args);
    return true;
  } catch {
    return false;
  }
};
const none = {};
const types = {
  isDataView: (v) => ArrayBuffer.isView(v) && typedTag.call(v) === undefined,
  isWeakMap: (v) => object(v) && v instanceof WeakMap && branded(WeakMap.prototype.has, none)(v),
  isWeakSet: (v) => object(v) && v instanceof WeakSet && branded(WeakSet.prototype.has, none)(v),
  isPromise: (v) => natives.promise(v) !== undefined,
  isTypedArray: (v) => ArrayBuffer.isView(v) && typedTag.call(v) !== undefined,
  isArrayBufferView: (v) => ArrayBuffer.isView(v),
  isArgumentsObject: (v) => object(v) && tag(v) === "[object Arguments]",
  isGeneratorObject: (v) => object(v) && tag(v) === "[object Generator]",
  isGeneratorFunction: (v) => typeof v === "function" && /^\[object (Async)?GeneratorFunction\]$/.test(tag(v)),
  isAsyncFunction: (v) => typeof v === "function" && /^\[object Async(Generator)?Function\]$/.test(tag(v)),
  isMapIterator: (v) => object(v) && tag(v) === "[object Map Iterator]",
  isSetIterator: (v) => object(v) && tag(v) === "[object Set Iterator]",
  isModuleNamespaceObject: (v) => object(v) && tag(v) === "[object Module]",
  isSharedArrayBuffer: () => false, isExternal: () => false, isEventTarget: (v) => object(v) && typeof v.dispatchEvent === "function",
  isCryptoKey: (v) => object(v) && tag(v) === "[object CryptoKey]",
  isKeyObject: (v) => object(v) && v instanceof require("crypto").KeyObject,
};
for (const [name, kind] of [
  ["isMap", "Map"], ["isSet", "Set"], ["isDate", "Date"], ["isRegExp", "RegExp"], ["isNativeError", "Error"], ["isProxy", "Proxy"], ["isArrayBuffer", "ArrayBuffer"], ["isAnyArrayBuffer", "ArrayBuffer"],
  ["isNumberObject", "Number"], ["isStringObject", "String"], ["isBooleanObject", "Boolean"], ["isSymbolObject", "Symbol"], ["isBigIntObject", "BigInt"],
]) types[name] = (v) => natives.kind(v) === kind;
const boxes = ["Number", "String", "Boolean", "Symbol", "BigInt"];
types.isBoxedPrimitive = (v) => boxes.includes(natives.kind(v));
for (const name of ["Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "Int8Array", "Int16Array", "Int32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"]) {
  types["is" + name] = (v) => ArrayBuffer.isView(v) && typedTag.call(v) === name;
}
module.exports = { types, promiseState: natives.promise, kindOf: natives.kind };
