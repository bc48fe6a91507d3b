import { check, throws, rejects } from "./check.js";
import fs, { readFileSync } from "fs";
import * as fsp from "node:fs/promises";
import net, { Socket } from "node:net";
import tls from "node:tls";
import os, { EOL } from "node:os";
import punycode from "node:punycode";
import module, { createRequire, builtinModules, isBuiltin } from "node:module";
import { performance as perf, PerformanceObserver } from "node:perf_hooks";
import dc, { channel, tracingChannel } from "node:diagnostics_channel";
import { isatty } from "node:tty";
import { Worker, isMainThread } from "node:worker_threads";
import { exec } from "child_process";
import http2 from "node:http2";
import vm from "node:vm";
import { test } from "node:test";
import sys from "sys";
import console2, { Console } from "node:console";
import constants from "constants";
export default async function () {
  throws("fs", () => readFileSync("/etc/passwd"), "Error: node:fs: readFileSync is not available in functions"); throws("fs callback", () => fs.readFile("/x", () => {}), "node:fs: readFile"); await rejects("fs/promises", fsp.readFile("/x"), "node:fs/promises: readFile"); await rejects("fs.promises", fs.promises.writeFile("/x", ""), "node:fs/promises: writeFile");
  check("no files", [fs.existsSync("/etc/passwd"), fs.constants.R_OK], [false, 4]);
  throws("net", () => net.connect(80, "a.example"), "node:net: connect"); throws("socket", () => new Socket().connect(80), "node:net: connect"); throws("tls", () => tls.connect({}), "node:tls: connect"); throws("server", () => net.createServer(), "node:net: createServer"); const secure = new tls.TLSSocket(new Socket()); check("tls socket", [secure instanceof Socket, secure.encrypted], [true, true]); throws("tls socket connects", () => secure.connect(1), "node:tls: TLSSocket.connect"); throws("tls socket", () => secure.getPeerCertificate(), "node:tls: TLSSocket.getPeerCertificate"); check("ip", [net.isIP("1.2.3.4"), net.isIP("::1"), net.isIP("1::2::3"), net.isIP("::ffff:1.2.3.4"), net.isIP("256.1.1.1"), net.isIPv6("fe80::1%eth0")], [4, 6, 0, 6, 0, true]);
  throws("exec", () => exec("ls"), "node:child_process: exec"); throws("worker", () => new Worker("x"), "node:worker_threads: Worker"); throws("http2", () => http2.connect("https://a"), "node:http2: connect"); throws("vm", () => vm.runInNewContext("1"), "node:vm: runInNewContext"); throws("test", () => test("x"), "node:test: test");
  try { exec("ls") } catch (e) { check("code", [e.code, e.name], ["ERR_CS_UNSUPPORTED", "Error"]) }
  check("os", [EOL, os.platform(), os.cpus().length, os.tmpdir(), os.constants.signals.SIGTERM, os.totalmem() > 1e6, os.hostname()], ["\n", "linux", 1, "/tmp", 15, true, "sous"]);
  check("punycode", [punycode.encode("mañana"), punycode.decode("maana-pta"), punycode.toASCII("bücher.example"), punycode.toUnicode("xn--bcher-kva.example"), punycode.ucs2.decode("😀")], ["maana-pta", "mañana", "xn--bcher-kva.example", "bücher.example", [128512]]);
  const req = createRequire("file:///x.js"); check("module", [req("node:fs") === fs, req("fs") === fs, isBuiltin("fs"), isBuiltin("node:test"), isBuiltin("test"), isBuiltin("lodash"), builtinModules.includes("fs"), module.builtinModules.length > 50], [true, true, true, true, false, false, true, true]);
  throws("not found", () => req("lodash"), "Cannot find module 'lodash'"); const name = ["o", "s"].join(""); check("computed require", require(name) === os, true);
  check("dynamic import", [(await import("node:os")).default === os, (await import("os")).EOL], [true, "\n"]);
  check("perf", [perf === performance, typeof perf.now(), new PerformanceObserver(() => {}).observe(), perf.eventLoopUtilization().utilization, perf.timerify(check) === check], [true, "number", undefined, 0, true]);
  const got = []; const c = channel("x"); c.subscribe((m, n) => got.push([m, n])); c.publish(1); check("channel", [got, c.hasSubscribers, dc.hasSubscribers("x"), dc.channel("x") === c], [[[1, "x"]], true, true, true]); c._subscribers = [];
  const t = tracingChannel("t"), ev = []; t.subscribe({ start: () => ev.push("start"), end: () => ev.push("end"), asyncEnd: () => ev.push("asyncEnd") }); check("trace", [t.traceSync((a) => a + 1, {}, null, 1), await t.tracePromise(async () => 5), ev.slice(-5)], [2, 5, ["start", "end", "start", "end", "asyncEnd"]]);
  check("rest", [isatty(1), isMainThread, sys === require("util"), constants.SIGINT, typeof console2.log], [false, true, true, 2, "function"]);
  const out = []; new Console({ write: (s) => out.push(s) }).log("%s!", "a", { b: 1 }); check("Console", out, ["a! { b: 1 }\n"]);
}
