// The methods whose results depend on a locale.
(function (natives) {
  "use strict";
  natives.localeMethods();
  Object.defineProperty(Array.prototype, "toLocaleString", {
    value: {
      toLocaleString(locales, options) {
        const list = Object(this), n = Math.min(Math.max(Math.trunc(Number(list.length)) || 0, 0), Number.MAX_SAFE_INTEGER);
        let out = "";
        for (let i = 0; i < n; i++) {
          if (i > 0) out += ",";
          if (list[i] !== undefined && list[i] !== null) out += String(list[i].toLocaleString(locales, options));
        }
        return out;
      },
    }.toLocaleString, writable: true, configurable: true,
  });
  Object.defineProperty(Array.prototype.toLocaleString, "length", { value: 0, configurable: true });
})
