// Well-formed strings.
(function () {
  "use strict";
  const define = (methods) => {
    for (const name of Object.keys(methods)) {
      if (name in String.prototype) continue;
      Object.defineProperty(String.prototype, name, { value: methods[name], writable: true, configurable: true });
    }
  };
  const text = (v) => {
    if (v === undefined || v === null) throw new TypeError("the receiver is not a string");
    if (typeof v === "symbol") throw new TypeError("Cannot convert a Symbol value to a string");
    return String(v);
  };
  const isLone = (s, i) => {
    const c = s.charCodeAt(i);
    if (c < 0xd800 || c > 0xdfff) return false;
    if (c < 0xdc00) {
      const next = s.charCodeAt(i + 1);
      return !(next >= 0xdc00 && next <= 0xdfff);
    }
    const before = s.charCodeAt(i - 1);
    return !(before >= 0xd800 && before < 0xdc00);
  };
  define({
    isWellFormed() {
      const s = text(this);
      for (let i = 0; i < s.length; i++) if (isLone(s, i)) return false;
      return true;
    },
    toWellFormed() {
      const s = text(this);
      let out = "", done = 0;
      for (let i = 0; i < s.length; i++) {
        if (isLone(s, i)) {
          out += s.slice(done, i) + "\ufffd";
          done = i + 1;
        }
      }
      return out + s.slice(done);
    },
  });
})
