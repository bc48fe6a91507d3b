import { check, throws } from "./check.js";
import process, { nextTick, env } from "node:process";
export default async function () {
  check("global", [globalThis.process === process, global === globalThis, typeof setImmediate, Object.prototype.toString.call(process)], [true, true, "function", "[object process]"]);
  check("env", [env.REGION, process.env === env, "NOPE" in process.env, (env.MORE = "x", process.env.MORE), cs.env.MORE], ["eu", true, false, "x", undefined]); delete env.MORE;
  check("facts", [process.platform, process.cwd(), /^v\d+\.\d+\.\d+$/.test(process.version), process.versions.node === process.version.slice(1), process.argv.length, typeof process.pid, ["x64", "arm64"].includes(process.arch)], ["linux", "/", true, true, 2, "number", true]);
  const [s, n] = process.hrtime(), d = process.hrtime([s, n]); check("time", [typeof s, n < 1e9, d[0] >= 0, typeof process.hrtime.bigint(), process.uptime() >= 0, process.memoryUsage().heapUsed > 0, process.memoryUsage.rss() > 0], ["number", true, true, "bigint", true, true, true]);
  const order = []; await new Promise((done) => { setTimeout(() => { Promise.resolve().then(() => order.push("promise")); nextTick((v) => { order.push(v); nextTick(() => order.push("nested")) }, "tick"); order.push("sync"); setTimeout(done, 1) }, 0) });
  check("nextTick", order, ["sync", "tick", "nested", "promise"]);
  check("events", [process.on("exit", () => {}) === process, process.listenerCount("exit") > 0, process.emit("nothing"), typeof process.once], [true, true, false, "function"]); process.removeAllListeners("exit");
  throws("exit", () => process.exit(1), "node:process: exit(1) is not available"); throws("kill", () => process.kill(1), "node:process: kill is not available"); throws("tick", () => nextTick(1), 'The "callback" argument must be of type function');
  check("output", [process.stdout.write("line\n"), process.stderr.write("part"), process.stdout.isTTY], [true, true, false]); process.emitWarning("careful", "MyWarning", "W1");
  check("builtin", [process.getBuiltinModule("fs") === require("fs"), process.getBuiltinModule("nope")], [true, undefined]);
}
