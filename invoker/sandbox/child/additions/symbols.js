// The well-known symbols that goja lacks.
(function () {
  "use strict";
  for (const name of ["asyncIterator", "dispose", "asyncDispose"]) {
    if (!(name in Symbol)) Object.defineProperty(Symbol, name, { value: Symbol("Symbol." + name) });
  }
})
