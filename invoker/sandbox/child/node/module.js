const { coded, invalidValue } = require("internal/errors");

const isBuiltin = (name) => natives.isBuiltin(name);

// createRequire makes a require that finds modules of Node: files are joined before.
function createRequire(file) {
  if (typeof file !== "string" && !(file instanceof URL)) throw invalidValue("filename", file, "must be a file URL object, file URL string, or absolute path string");
  const f = (name) => natives.require(name);
  f.resolve = (name) => {
    if (!isBuiltin(name)) throw coded(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}'`);
    return name;
  };
  f.cache = {};
  f.main = undefined;
  f.extensions = {};
  return f;
}

const builtinModules = natives.modules.filter((m) => !/^(test|sqlite|sea)\b/.test(m)).concat("node:sea", "node:sqlite", "node:test", "node:test/reporters");

function Module(id = "") {
  this.id = id;
  this.exports = {};
  this.loaded = false;
  this.children = [];
}
Object.assign(Module, { Module, createRequire, isBuiltin, builtinModules, _extensions: {}, _cache: {}, _pathCache: {}, globalPaths: [], syncBuiltinESMExports() {}, enableCompileCache: () => ({ status: 3 }), getCompileCacheDir: () => undefined, flushCompileCache() {}, constants: { compileCacheStatus: { FAILED: 0, ENABLED: 1, ALREADY_ENABLED: 2, DISABLED: 3 } }, findSourceMap: () => undefined, setSourceMapsSupport() {}, getSourceMapsSupport: () => ({ enabled: false, nodeModules: false, generatedCode: false }) });
module.exports = Module;
