// The methods of Annex B that goja lacks (https://tc39.es/ecma262/#sec-additional-built-in-properties).
(function () {
  "use strict";
  const { defineProperty } = Object, { getFullYear, getTime, getMonth, getDate, setFullYear, setTime, toUTCString } = Date.prototype;
  const { apply } = Reflect, { replace } = String.prototype;
  const define = (o, methods) => {
    for (const name of Object.keys(methods)) {
      if (!(name in o)) defineProperty(o, name, { value: methods[name], writable: true, configurable: true });
    }
  };
  define(Date.prototype, {
    toGMTString: toUTCString,
    getYear() { return apply(getFullYear, this, []) - 1900; },
    setYear(year) {
      const time = apply(getTime, this, []), y = Number(year);
      if (y !== y) return apply(setTime, this, [NaN]);
      const whole = Math.trunc(y), full = whole >= 0 && whole <= 99 ? whole + 1900 : whole;
      if (time !== time) apply(setTime, this, [new Date(1970, 0, 1).getTime()]);
      const month = apply(getMonth, this, []), date = apply(getDate, this, []);
      return apply(setFullYear, this, [full, month, date]);
    },
  });
  const html = (text, tag, attribute, value) => {
    if (text === undefined || text === null) throw new TypeError("String.prototype method called on null or undefined");
    const s = `${text}`;
    const attributes = attribute === "" ? "" : ` ${attribute}="${apply(replace, `${value}`, [/"/g, "&quot;"])}"`;
    return `<${tag}${attributes}>${s}</${tag}>`;
  };
  define(String.prototype, {
    anchor(name) { return html(this, "a", "name", name); },
    big() { return html(this, "big", ""); },
    blink() { return html(this, "blink", ""); },
    bold() { return html(this, "b", ""); },
    fixed() { return html(this, "tt", ""); },
    fontcolor(color) { return html(this, "font", "color", color); },
    fontsize(size) { return html(this, "font", "size", size); },
    italics() { return html(this, "i", ""); },
    link(url) { return html(this, "a", "href", url); },
    small() { return html(this, "small", ""); },
    strike() { return html(this, "strike", ""); },
    sub() { return html(this, "sub", ""); },
    sup() { return html(this, "sup", ""); },
  });
})
