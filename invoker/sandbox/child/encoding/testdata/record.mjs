// Writes what the decoders of the Encoding standard return for all bytes, pairs of bytes and
// longer sequences, as decoders.txt, with which the tests of package encoding compare. The
// argument is a folder with the indexes of the standard, index-*.txt of
// https://github.com/whatwg/encoding:
//
//	node record.mjs FOLDER > decoders.txt
//	node record.mjs FOLDER euc-kr pairs b0     the texts of one line, in place of their hash
//
// A line is an encoding, a group of sequences, and for encodings of one byte the characters
// of 80 to FF, or else the first 8 digits of the SHA-256 of all texts. A text ends with
// "!" if it has an error, and a newline. Standard error gets the number of sequences for
// which Node's own TextDecoder differs.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const [folder, ...only] = process.argv.slice(2);
const dates = {};
function index(name) {
  const list = [];
  for (const line of fs.readFileSync(path.join(folder, `index-${name}.txt`), "utf8").split("\n")) {
    const date = line.match(/^# Date: (.*)/);
    if (date) dates[name] = date[1];
    const m = line.match(/^\s*(\d+)\s+0x([0-9A-F]+)/);
    if (m) list[Number(m[1])] = parseInt(m[2], 16);
  }
  return list;
}
const singles = "ibm866 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 koi8-r koi8-u macintosh windows-874 windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 x-mac-cyrillic".split(" ");
const jis0208 = index("jis0208"), jis0212 = index("jis0212"), euckr = index("euc-kr"), big5 = index("big5"), gb = index("gb18030");
const ranges = [];
index("gb18030-ranges").forEach((code, pointer) => ranges.push([pointer, code]));

const within = (b, lo, hi) => b >= lo && b <= hi;
const END = -1, ERROR = null;
// A handler gets a byte or END. It returns code points, ERROR, or undefined to go on, and
// restores bytes with queue.unshift.
const pairs = (isLead, lookup, alone) => () => {
  let lead = 0;
  return (b, queue) => {
    if (b === END) { const had = lead; lead = 0; return had ? ERROR : undefined; }
    if (lead) {
      const code = lookup(lead, b);
      lead = 0;
      if (code !== undefined) return code;
      if (b < 0x80) queue.unshift(b);
      return ERROR;
    }
    if (b < 0x80) return [b];
    if (isLead(b)) { lead = b; return undefined; }
    const code = alone?.(b);
    return code === undefined ? ERROR : [code];
  };
};
const one = (code) => (code === undefined ? undefined : [code]);
const decoders = {
  "big5": pairs((b) => within(b, 0x81, 0xfe), (l, b) => {
    if (!within(b, 0x40, 0x7e) && !within(b, 0xa1, 0xfe)) return undefined;
    const pointer = (l - 0x81) * 157 + b - (b < 0x7f ? 0x40 : 0x62);
    return { 1133: [0xca, 0x304], 1135: [0xca, 0x30c], 1164: [0xea, 0x304], 1166: [0xea, 0x30c] }[pointer] ?? one(big5[pointer]);
  }),
  "euc-kr": pairs((b) => within(b, 0x81, 0xfe), (l, b) => (within(b, 0x41, 0xfe) ? one(euckr[(l - 0x81) * 190 + b - 0x41]) : undefined)),
  "shift_jis": pairs((b) => within(b, 0x81, 0x9f) || within(b, 0xe0, 0xfc), (l, b) => {
    if (!within(b, 0x40, 0x7e) && !within(b, 0x80, 0xfc)) return undefined;
    const pointer = (l - (l < 0xa0 ? 0x81 : 0xc1)) * 188 + b - (b < 0x7f ? 0x40 : 0x41);
    return within(pointer, 8836, 10715) ? [0xe000 - 8836 + pointer] : one(jis0208[pointer]);
  }, (b) => (b === 0x80 ? b : within(b, 0xa1, 0xdf) ? 0xff61 - 0xa1 + b : undefined)),
  "euc-jp": () => {
    let lead = 0, more = false;
    return (b, queue) => {
      if (b === END) { const had = lead; lead = 0; more = false; return had ? ERROR : undefined; }
      if (lead === 0x8e && within(b, 0xa1, 0xdf)) { lead = 0; return [0xff61 - 0xa1 + b]; }
      if (lead === 0x8f && within(b, 0xa1, 0xfe)) { more = true; lead = b; return undefined; }
      if (lead) {
        const code = within(lead, 0xa1, 0xfe) && within(b, 0xa1, 0xfe) ? (more ? jis0212 : jis0208)[(lead - 0xa1) * 94 + b - 0xa1] : undefined;
        lead = 0;
        more = false;
        if (code !== undefined) return [code];
        if (b < 0x80) queue.unshift(b);
        return ERROR;
      }
      if (b < 0x80) return [b];
      if (b === 0x8e || b === 0x8f || within(b, 0xa1, 0xfe)) { lead = b; return undefined; }
      return ERROR;
    };
  },
  "gb18030": () => {
    let s = [];
    return (b, queue) => {
      const [first, second, third] = s;
      if (b === END) { const had = s.length; s = []; return had ? ERROR : undefined; }
      if (third) {
        s = [];
        if (!within(b, 0x30, 0x39)) { queue.unshift(second, third, b); return ERROR; }
        const pointer = (first - 0x81) * 12600 + (second - 0x30) * 1260 + (third - 0x81) * 10 + b - 0x30;
        if (within(pointer, 39420, 188999) || pointer > 1237575) return ERROR;
        if (pointer === 7457) return [0xe7c7];
        const [offset, code] = ranges.findLast(([p]) => p <= pointer);
        return [code + pointer - offset];
      }
      if (second) {
        if (within(b, 0x81, 0xfe)) { s.push(b); return undefined; }
        s = [];
        queue.unshift(second, b);
        return ERROR;
      }
      if (first) {
        if (within(b, 0x30, 0x39)) { s.push(b); return undefined; }
        s = [];
        const code = within(b, 0x40, 0x7e) || within(b, 0x80, 0xfe) ? gb[(first - 0x81) * 190 + b - (b < 0x7f ? 0x40 : 0x41)] : undefined;
        if (code !== undefined) return [code];
        if (b < 0x80) queue.unshift(b);
        return ERROR;
      }
      if (b < 0x80) return [b];
      if (b === 0x80) return [0x20ac];
      if (b === 0xff) return ERROR;
      s = [b];
      return undefined;
    };
  },
  "iso-2022-jp": () => {
    let state = "ascii", output = "ascii", lead = 0, flag = false;
    const emit = (v) => { flag = false; return v; };
    return (b, queue) => {
      switch (state) {
        case "ascii": case "roman": case "katakana": case "lead":
          if (b === 0x1b) { state = "start"; return undefined; }
          if (b === END) return undefined;
          if (state === "lead") {
            if (!within(b, 0x21, 0x7e)) return emit(ERROR);
            flag = false;
            lead = b;
            state = "trail";
            return undefined;
          }
          if (state === "katakana") return emit(within(b, 0x21, 0x5f) ? [0xff61 - 0x21 + b] : ERROR);
          if (state === "roman" && b === 0x5c) return emit([0xa5]);
          if (state === "roman" && b === 0x7e) return emit([0x203e]);
          return emit(b < 0x80 && b !== 0x0e && b !== 0x0f ? [b] : ERROR);
        case "trail":
          if (b === 0x1b) { state = "start"; return ERROR; }
          state = "lead";
          return within(b, 0x21, 0x7e) ? one(jis0208[(lead - 0x21) * 94 + b - 0x21]) ?? ERROR : ERROR;
        case "start":
          if (b === 0x24 || b === 0x28) { lead = b; state = "escape"; return undefined; }
          if (b !== END) queue.unshift(b);
          flag = false;
          state = output;
          return ERROR;
        default: {
          const next = { 0x2842: "ascii", 0x284a: "roman", 0x2849: "katakana", 0x2440: "lead", 0x2442: "lead" }[lead * 256 + b];
          if (next) {
            state = output = next;
            const had = flag;
            flag = true;
            return had ? ERROR : undefined;
          }
          queue.unshift(lead, ...(b === END ? [] : [b]));
          flag = false;
          state = output;
          return ERROR;
        }
      }
    };
  },
};
decoders.gbk = decoders.gb18030;
for (const name of singles) {
  const list = index(name);
  decoders[name] = pairs(() => false, null, (b) => list[b - 0x80]);
}
decoders["iso-8859-8-i"] = decoders["iso-8859-8"];
decoders["x-user-defined"] = pairs(() => false, null, (b) => 0xf780 + b - 0x80);

function decode(name, bytes) {
  const handler = decoders[name](), queue = [...bytes];
  let text = "", wrong = false;
  for (let ended = false; ; ) {
    const b = queue.length ? queue.shift() : END;
    const got = handler(b, queue);
    if (got === ERROR) { text += "\ufffd"; wrong = true; } else if (got) text += String.fromCodePoint(...got);
    if (b === END && queue.length === 0) { if (ended || got === undefined) return text + (wrong ? "!" : ""); ended = true; }
  }
}

const hex = (n) => n.toString(16).padStart(2, "0");
const all = (f, from = 0, to = 256) => Array.from({ length: to - from }, (_, i) => f(from + i)).flat(1);
const groups = {};
const add = (name, group, sequences) => ((groups[name] ??= []).push([group, sequences]));
const both = (...bytes) => [bytes, [...bytes, 0x41]];
for (const name of ["big5", "euc-kr", "shift_jis", "euc-jp", "gb18030", "gbk"]) {
  add(name, "pairs ascii", () => all((l) => all((t) => both(l, t)), 0, 0x80));
  for (let l = 0x80; l < 256; l++) add(name, `pairs ${hex(l)}`, () => all((t) => both(l, t)));
}
for (let l = 0x80; l < 256; l++) add("euc-jp", `three ${hex(l)}`, () => all((t) => both(0x8f, l, t)));
for (let l = 0x81; l < 0xff; l++) {
  add("gb18030", `four ${hex(l)}`, () => [all((s) => all((t) => all((f) => [l, s, t, f], 0x30, 0x3a), 0x81, 0xff), 0x30, 0x3a)]);
  add("gb18030", `cut ${hex(l)}`, () => all((t) => [...both(l, 0x30, t), ...both(l, 0x39, 0x81, t), ...both(l, 0x35, 0xfe, t)]));
}
for (const [to, escape] of Object.entries({ ascii: [], roman: [0x1b, 0x28, 0x4a], katakana: [0x1b, 0x28, 0x49], jis0208: [0x1b, 0x24, 0x42] })) {
  for (let l = 0; l < 256; l += 16) add("iso-2022-jp", `${to} ${hex(l)}`, () => all((x) => all((t) => both(...escape, x, t)), l, l + 16));
}
for (let l = 0; l < 256; l += 16) {
  add("iso-2022-jp", `escape ${hex(l)}`, () => all((x) => all((t) => [...both(0x1b, x, t), [0x1b, 0x24, 0x42, 0x30, 0x1b, x, t], [0x1b, 0x28, 0x49, 0x1b, x, t, 0x21, 0x21]]), l, l + 16));
}

const lines = [];
if (only.length) {
  const [name, ...group] = only;
  const [, sequences] = groups[name].find(([g]) => g === group.join(" "));
  fs.writeFileSync(1, sequences().map((s) => s.map(hex).join("") + " " + JSON.stringify(decode(name, s)) + "\n").join(""));
  process.exit();
}
const node = (name, bytes) => {
  const text = new TextDecoder(name).decode(Uint8Array.from(bytes));
  try { new TextDecoder(name, { fatal: true }).decode(Uint8Array.from(bytes)); return text; } catch { return text + "!"; }
};
const differs = {};
const compare = (name, bytes, want) => {
  try { if (node(name, bytes) !== want) differs[name] = (differs[name] ?? 0) + 1; } catch { differs[name] = "unknown"; }
};
for (const name of [...singles, "iso-8859-8-i", "x-user-defined"]) {
  const texts = all((b) => decode(name, [b]), 0x80);
  texts.forEach((t, i) => compare(name, [0x80 + i], t));
  lines.push(`${name} single ${texts.map((t) => t.charCodeAt(0).toString(16).padStart(4, "0")).join("")}`);
}
for (const [name, list] of Object.entries(groups)) {
  for (const [group, sequences] of list) {
    const h = crypto.createHash("sha256");
    for (const s of sequences()) {
      const want = decode(name, s);
      h.update(want + "\n");
      compare(name, s, want);
    }
    lines.push(`${name} ${group} ${h.digest("hex").slice(0, 8)}`);
  }
}
const newest = Object.entries(dates).sort(([, a], [, b]) => (a < b ? 1 : -1))[0];
console.log(`# The newest index of the standard is ${newest[0]}, of ${newest[1]}.`);
console.log(lines.join("\n"));
console.error(`Node ${process.version}, ICU ${process.versions.icu}, differs in`, differs);
