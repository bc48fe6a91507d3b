// Tests of what needs no browser. cmd/sous/consoletest bundles and runs them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, duration, percent, quoted, relative } from "../src/format.ts";
import { matching } from "../src/match.ts";
import { messages, parse } from "../src/stream.ts";
import { base64, untar } from "../src/tar.ts";

test("durations and sizes", () => {
  assert.deepEqual([0, 999, 1_000, 9_999, 61_000, 3_660_000, 90_000_000, null].map(duration), ["0 ms", "999 ms", "1.00 s", "10.00 s", "1 min 1 s", "1 h 1 min", "1 d 1 h", "–"]);
  assert.deepEqual([0, 1023, 1024, 5 * 2 ** 20, 2 ** 30].map(bytes), ["0 B", "1023 B", "1.0 KiB", "5.0 MiB", "1.0 GiB"]);
  assert.deepEqual([percent(0, 0), percent(1, 3), percent(3, 3)], ["0 %", "33.3 %", "100 %"]);
});

test("relative times", () => {
  const now = 1_000_000_000_000;
  assert.deepEqual([0, 30_000, 60_000, 7_200_000, 172_800_000, -90_000].map((past) => relative(now - past, now)), ["now", "30 s ago", "1 min ago", "2 h ago", "2 d ago", "in 1 min"]);
});

test("words of a shell", () => {
  assert.equal(quoted("t_default"), "t_default");
  assert.equal(quoted(`{"a": "it's"}`), `'{"a": "it'\\''s"}'`);
  assert.equal(quoted("$(reboot)"), "'$(reboot)'");
  assert.equal(quoted(""), "''");
});

test("matches", () => {
  const names = ["report-mail", "mail", "mailbox"].map((name) => ({ name }));
  assert.deepEqual(matching(names, "MAIL").map((e) => e.name), ["mail", "mailbox", "report-mail"]);
  assert.deepEqual(matching(names, "mail rep").map((e) => e.name), ["report-mail"]);
  assert.deepEqual(matching(names, "mailx"), []);
});

test("server-sent events", async () => {
  assert.deepEqual(parse("id: 7\nevent: log\ndata: {}"), { id: "7", name: "log", data: "{}" });
  assert.deepEqual(parse(": alive"), { id: "", name: "message", data: "" });
  // Events arrive in pieces, also in the middle of a character.
  const raw = new TextEncoder().encode('event: log\ndata: "é"\n\nid: 2\n\n');
  const body = new ReadableStream<Uint8Array>({
    start(control) {
      for (const byte of raw) control.enqueue(Uint8Array.of(byte));
      control.close();
    },
  });
  const got = [];
  for await (const m of messages(body)) got.push(m);
  assert.deepEqual(got, [
    { id: "", name: "log", data: '"é"' },
    { id: "2", name: "message", data: "" },
  ]);
});

test("files of a tar", () => {
  const entry = (name: string, kind: string, content: string) => {
    const body = new TextEncoder().encode(content);
    const raw = new Uint8Array(512 + Math.ceil(body.length / 512) * 512);
    const put = (at: number, value: string) => raw.set(new TextEncoder().encode(value), at);
    put(0, name);
    put(124, body.length.toString(8).padStart(11, "0"));
    put(156, kind);
    raw.set(body, 512);
    return [...raw];
  };
  const long = "lib/" + "x".repeat(120) + ".js";
  const raw = Uint8Array.from([...entry("function.js", "0", "export default 1; // é"), ...entry("pax", "x", `137 path=${long}\n`), ...entry("cut", "0", "2"), ...entry("link", "2", ""), ...new Uint8Array(1024)]);
  assert.deepEqual([...untar(raw)], [["function.js", "export default 1; // é"], [long, "2"]]);
  assert.equal(untar(new Uint8Array()).size, 0);
  assert.equal(base64("é"), "w6k=");
});
