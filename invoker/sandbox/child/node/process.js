const { coded, unsupportedError, invalidType, callback } = require("internal/errors");
const levels = { debug: 0, info: 1, warn: 2, error: 3 };

// Ticks run after the code that the loop called, before the reactions of promises; those
// of a reaction run after it.
let ticks = [], scheduled = false;
function nextTick(f, ...args) {
  callback(f);
  const hooks = contexts();
  ticks.push({ f, args, context: hooks && hooks.snapshot() });
  if (!scheduled) {
    scheduled = true;
    natives.microtask(drain);
  }
}
function drain() {
  scheduled = false;
  while (ticks.length > 0) {
    const { f, args, context } = ticks.shift();
    if (context) context(f, ...args);
    else f(...args);
  }
}
natives.onTick(drain);

// contexts returns AsyncLocalStorage if the script uses it.
function contexts() { return natives.loaded("async_hooks") ? require("async_hooks").AsyncLocalStorage : undefined; }

// hrtime counts from the start of the instance.
function hrtime(before) {
  const now = natives.nanoseconds();
  let seconds = Math.floor(now / 1e9), rest = now % 1e9;
  if (before !== undefined) {
    if (!Array.isArray(before)) throw invalidType("time", "Array", before);
    seconds -= before[0];
    rest -= before[1];
    if (rest < 0) {
      seconds--;
      rest += 1e9;
    }
  }
  return [seconds, rest];
}
hrtime.bigint = () => BigInt(natives.nanoseconds());

function memoryUsage() {
  const used = natives.memory();
  return { rss: used, heapTotal: used, heapUsed: used, external: 0, arrayBuffers: 0 };
}
memoryUsage.rss = () => natives.memory();

// Lines of stdout and stderr are lines of the log.
function output(fd, level) {
  const { Writable } = require("stream");
  let left = "";
  const put = (text) => {
    const lines = (left + text).split("\n");
    left = lines.pop();
    for (const line of lines) natives.log(level, line);
  };
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, encoding, done) {
      put(typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk));
      done();
    },
  });
  // What one call writes ends a line of the log, also without a line feed.
  stream.write = function (chunk, encoding, done) {
    put(typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk));
    if (left !== "") put("\n");
    if (typeof encoding === "function") done = encoding;
    if (done) nextTick(done);
    return true;
  };
  stream.isTTY = false;
  stream.fd = fd;
  stream.columns = 80;
  stream.hasColors = () => false;
  stream.getColorDepth = () => 1;
  stream._type = "pipe";
  return stream;
}

function input() {
  const stream = require("stream").Readable.from([]);
  stream.fd = 0;
  stream.isTTY = false;
  return stream;
}

function emitWarning(warning, type, code) {
  let detail;
  if (type !== null && typeof type === "object") ({ type, code, detail } = type);
  if (!(warning instanceof Error)) {
    const e = new Error(String(warning));
    e.name = typeof type === "string" ? type : "Warning";
    if (code !== undefined && typeof code !== "function") e.code = code;
    warning = e;
  }
  natives.log(levels.warn, `${warning.code ? `[${warning.code}] ` : ""}${warning.name}: ${warning.message}${detail ? `\n${detail}` : ""}`);
}

const refused = (name) => function () { throw unsupportedError("process", name); };

const process = {
  title: "sous", version: "v22.0.0", versions: { node: "22.0.0", sous: "1", modules: "127" }, release: { name: "node", lts: false },
  platform: "linux", arch: natives.arch || "arm64", pid: 1, ppid: 0, argv: ["/bin/sous", "/function.js"], argv0: "sous", execArgv: [], execPath: "/bin/sous", exitCode: undefined,
  env: natives.env, config: { target_defaults: {}, variables: {} }, features: { inspector: false, typescript: false }, debugPort: 0, noDeprecation: false,
  allowedNodeEnvironmentFlags: new Set(), report: undefined, connected: false, permission: { has: () => false },
  nextTick, hrtime, memoryUsage, emitWarning,
  cwd: () => "/", umask: () => 0o22, uptime: () => natives.nanoseconds() / 1e9,
  cpuUsage: (before) => ({ user: natives.cpu() - ((before && before.user) || 0), system: 0 }),
  resourceUsage: () => ({ userCPUTime: natives.cpu(), systemCPUTime: 0, maxRSS: Math.floor(natives.memory() / 1024) }),
  availableMemory: () => natives.memoryLimit, constrainedMemory: () => natives.memoryLimit,
  getuid: () => 65534, geteuid: () => 65534, getgid: () => 65534, getegid: () => 65534, getgroups: () => [65534],
  exit: (code) => { throw coded(Error, "ERR_CS_UNSUPPORTED", `node:process: exit(${code === undefined ? "" : code}) is not available in functions; return or throw instead`); },
  getBuiltinModule: (name) => { const m = require("module"); return m.isBuiltin(name) ? m.createRequire("file:///")(name) : undefined; },
  assert: (value, message) => require("assert")(value, message), ref() {}, unref() {}, setUncaughtExceptionCaptureCallback() {}, hasUncaughtExceptionCaptureCallback: () => false,
  setSourceMapsEnabled() {}, getActiveResourcesInfo: () => [], binding: refused("binding"), domain: null,
  finalization: { register() {}, registerBeforeExit() {}, unregister() {} },
};
for (const name of ["abort", "kill", "chdir", "dlopen", "setuid", "setgid", "seteuid", "setegid", "setgroups", "initgroups", "loadEnvFile", "execve", "reallyExit", "openStdin"]) process[name] = refused(name);
for (const [name, make] of [["stdout", () => output(1, levels.info)], ["stderr", () => output(2, levels.error)], ["stdin", input]]) {
  Object.defineProperty(process, name, {
    configurable: true, enumerable: true,
    get() {
      const stream = make();
      Object.defineProperty(process, name, { value: stream, writable: true, configurable: true, enumerable: true });
      return stream;
    },
  });
}
Object.defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });

// The events of a process do not happen here: exit, signals, uncaught exceptions.
const emitter = require("events").prototype;
Object.setPrototypeOf(process, Object.create(emitter, { constructor: { value: function process() {}, writable: true, configurable: true } }));
module.exports = process;
