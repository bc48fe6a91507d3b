// RegExp with the flags d and v, properties, modifiers, duplicate names and lookbehind. A
// RegExp object is one of goja's, of an expression that does not matter, with ours in a
// slot; those that goja's own methods make have none and are run by goja.
(function (native) {
  "use strict";
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const { construct, apply, ownKeys } = Reflect;
  const Native = RegExp;
  const { prototype } = Native;
  const { regexpCompile, regexpExec, regexpTest, regexpSource, regexpFlags } = native;

  const build = (pattern, flags, target) => {
    const object = construct(Native, [], target);
    regexpCompile(object, pattern, flags);
    return object;
  };

  const isRegExp = (v) => {
    if (Object(v) !== v) return false;
    const match = v[Symbol.match];
    return match !== undefined ? !!match : getSource(v) !== undefined;
  };
  const nativeSource = getOwnPropertyDescriptor(prototype, "source").get;
  const nativeFlags = getOwnPropertyDescriptor(prototype, "flags").get;
  // getSource returns the source of a RegExp object, undefined for other values.
  const getSource = (v) => {
    const own = regexpSource(v);
    if (own !== undefined) return own;
    if (v === prototype) return undefined;
    try { return apply(nativeSource, v, []); } catch { return undefined; }
  };

  function RegExpOfOurs(pattern, flags) {
    const matches = isRegExp(pattern);
    // A call without new from within a constructor sees that constructor's new.target in goja.
    let target = this === undefined || this === globalThis ? undefined : new.target;
    if (target === undefined) {
      target = RegExpOfOurs;
      if (matches && flags === undefined && pattern.constructor === target) return pattern;
    }
    let p, f;
    const source = Object(pattern) === pattern ? getSource(pattern) : undefined;
    if (source !== undefined) {
      p = source;
      f = flags === undefined ? (regexpFlags(pattern) ?? apply(nativeFlags, pattern, [])) : flags;
    } else if (matches) {
      p = pattern.source;
      f = flags === undefined ? pattern.flags : flags;
    } else {
      p = pattern;
      f = flags;
    }
    p = p === undefined ? "" : toText(p);
    f = f === undefined ? "" : toText(f);
    return build(p, f, target);
  }
  for (const key of ownKeys(Native)) {
    if (key !== "prototype") defineProperty(RegExpOfOurs, key, getOwnPropertyDescriptor(Native, key));
  }
  defineProperty(RegExpOfOurs, "name", { value: "RegExp", configurable: true });
  defineProperty(RegExpOfOurs, "length", { value: 2, configurable: true });
  defineProperty(RegExpOfOurs, "prototype", { value: prototype, writable: false });
  const define = (to, name, value) => defineProperty(to, name, { value, writable: true, configurable: true });
  define(prototype, "constructor", RegExpOfOurs);
  define(globalThis, "RegExp", RegExpOfOurs);
  define(globalThis, "__cs_regexp", (pattern, flags) => build(pattern, flags, RegExpOfOurs));

  native.regexpFallback(prototype.exec);
  define(prototype, "exec", regexpExec);
  define(prototype, "test", { test(string) {
    if (Object(this) !== this) throw new TypeError("RegExp.prototype.test is not on an object");
    const text = toText(string);
    const { exec } = this;
    if (exec === regexpExec) return apply(regexpTest, this, [text]);
    if (typeof exec !== "function") return apply(regexpTest, this, [text]);
    const result = apply(exec, this, [text]);
    if (result !== null && Object(result) !== result) throw new TypeError("exec returned neither an object nor null");
    return result !== null;
  } }.test);
  define(prototype, "compile", { compile(pattern, flags) {
    if (getSource(this) === undefined) throw new TypeError("RegExp.prototype.compile is not on a RegExp");
    const source = Object(pattern) === pattern ? getSource(pattern) : undefined;
    if (source !== undefined && flags !== undefined) throw new TypeError("flags are not allowed with a RegExp");
    const f = source !== undefined ? pattern.flags : flags === undefined ? "" : toText(flags);
    const p = source !== undefined ? source : pattern === undefined ? "" : toText(pattern);
    regexpCompile(this, p, f);
    this.lastIndex = 0;
    return this;
  } }.compile);

  const getter = (holder) => {
    const name = ownKeys(holder)[0];
    defineProperty(prototype, name, { get: getOwnPropertyDescriptor(holder, name).get, enumerable: false, configurable: true });
  };
  for (const [name, letter] of [["hasIndices", "d"], ["global", "g"], ["ignoreCase", "i"], ["multiline", "m"],
    ["dotAll", "s"], ["unicode", "u"], ["unicodeSets", "v"], ["sticky", "y"]]) {
    const fallback = getOwnPropertyDescriptor(prototype, name)?.get;
    getter({ get [name]() {
      if (Object(this) !== this) throw new TypeError(`RegExp.prototype.${name} is not on an object`);
      const flags = regexpFlags(this);
      if (flags !== undefined) return flags.includes(letter);
      if (this === prototype) return undefined;
      if (fallback) return apply(fallback, this, []);
      apply(nativeSource, this, []);
      return false;
    } });
  }
  getter({ get source() {
    const own = regexpSource(this);
    return own === undefined ? apply(nativeSource, this, []) : own;
  } });
  getter({ get flags() {
    if (Object(this) !== this) throw new TypeError("RegExp.prototype.flags is not on an object");
    let flags = "";
    if (this.hasIndices) flags += "d";
    if (this.global) flags += "g";
    if (this.ignoreCase) flags += "i";
    if (this.multiline) flags += "m";
    if (this.dotAll) flags += "s";
    if (this.unicode) flags += "u";
    if (this.unicodeSets) flags += "v";
    if (this.sticky) flags += "y";
    return flags;
  } });

  // The methods for strings. Those of Go are for expressions of ours that the script left
  // as they are; goja's are for all other objects.
  const { regexpPristine, regexpReplace, regexpMatch, regexpSplit } = native;
  const { replace, match, matchAll, species } = Symbol;
  const nativeReplace = prototype[replace], nativeMatch = prototype[match], nativeMatchAll = prototype[matchAll];
  define(prototype, replace, { [replace](string, value) {
    return regexpPristine(this) ? regexpReplace(this, string, value) : apply(nativeReplace, this, [string, value]);
  } }[replace]);
  define(prototype, match, { [match](string) {
    return regexpPristine(this) ? regexpMatch(this, string) : apply(nativeMatch, this, [string]);
  } }[match]);
  const constructorOf = (object) => {
    const { constructor } = object;
    if (constructor === undefined) return RegExpOfOurs;
    if (Object(constructor) !== constructor) throw new TypeError("the constructor is not an object");
    return constructor[species] ?? RegExpOfOurs;
  };
  define(prototype, matchAll, { [matchAll](string) {
    if (Object(this) !== this) throw new TypeError("RegExp.prototype[Symbol.matchAll] is not on an object");
    const text = toText(string);
    const C = constructorOf(this);
    const flags = toText(this.flags);
    const matcher = new C(this, flags);
    const { lastIndex } = this;
    // goja makes the iterator, of an object that leads it to the matcher.
    const stand = { constructor: { [species]: function () { return matcher; } }, flags, lastIndex };
    return apply(nativeMatchAll, stand, [text]);
  } }[matchAll]);
  const toText = (v) => {
    if (typeof v === "symbol") throw new TypeError("Cannot convert a Symbol value to a string");
    return String(v);
  };
  define(prototype, Symbol.split, { [Symbol.split](string, limit) {
    if (Object(this) !== this) throw new TypeError("RegExp.prototype[Symbol.split] is not on an object");
    const text = toText(string);
    const C = constructorOf(this);
    if (C === RegExpOfOurs && regexpPristine(this)) {
      return regexpSplit(this, text, limit === undefined ? 2 ** 32 - 1 : limit >>> 0);
    }
    const flags = toText(this.flags);
    const full = flags.includes("u") || flags.includes("v");
    const splitter = new C(this, flags.includes("y") ? flags : flags + "y");
    const most = limit === undefined ? 2 ** 32 - 1 : limit >>> 0;
    const parts = [];
    const put = (v) => defineProperty(parts, parts.length, { value: v, writable: true, enumerable: true, configurable: true });
    if (most === 0) return parts;
    const size = text.length;
    const run = () => {
      const { exec } = splitter;
      const result = apply(typeof exec === "function" ? exec : regexpExec, splitter, [text]);
      if (result !== null && Object(result) !== result) throw new TypeError("exec returned neither an object nor null");
      return result;
    };
    if (size === 0) {
      if (run() === null) put(text);
      return parts;
    }
    const toLength = (v) => { v = Math.trunc(+v) || 0; return v < 0 ? 0 : v > 2 ** 53 - 1 ? 2 ** 53 - 1 : v; };
    const advance = (at) => at + (full && text.codePointAt(at) > 0xffff ? 2 : 1);
    let begun = 0, at = 0;
    while (at < size) {
      splitter.lastIndex = at;
      const found = run();
      const end = found === null ? begun : Math.min(toLength(splitter.lastIndex), size);
      if (found === null || end === begun) { at = advance(at); continue; }
      put(text.slice(begun, at));
      if (parts.length === most) return parts;
      begun = end;
      const groups = Math.max(toLength(found.length) - 1, 0);
      for (let i = 1; i <= groups; i++) {
        put(found[i]);
        if (parts.length === most) return parts;
      }
      at = begun;
    }
    put(text.slice(begun));
    return parts;
  } }[Symbol.split]);

  define(RegExpOfOurs, "escape", { escape(string) {
    if (typeof string !== "string") throw new TypeError("RegExp.escape: the argument must be a string");
    return native.regexpEscape(string);
  } }.escape);
})
