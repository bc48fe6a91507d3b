import { check, throws } from "./check.js";
import { Buffer as B, constants, isUtf8, isAscii, transcode, kMaxLength } from "node:buffer";
const hex = (b) => b.toString("hex");
export default function () {
  check("global", [B === Buffer, B === globalThis.Buffer, require("buffer").Buffer === B, Buffer.name], [true, true, true, "Buffer"]);
  check("kinds", [Buffer.from("a") instanceof Uint8Array, Buffer.isBuffer(new Uint8Array(1)), Buffer.isBuffer(Buffer.alloc(1)), ArrayBuffer.isView(Buffer.alloc(1))], [true, false, true, true]);
  for (const [text, encoding, want] of [
    ["héllo €😀", "utf8", "68c3a96c6c6f20e282acf09f9880"], ["héllo", "latin1", "68e96c6c6f"], ["héllo", "binary", "68e96c6c6f"], ["hé", "utf16le", "6800e900"], ["hé", "ucs2", "6800e900"],
    ["68e96c6c6fzz", "hex", "68e96c6c6f"], ["abc", "hex", "ab"], ["aGVsbG8=", "base64", "68656c6c6f"], ["aGVsbG8", "base64", "68656c6c6f"], ["-_-_", "base64", "fbffbf"], ["-_-_", "base64url", "fbffbf"], ["aGV\nsbG8= junk", "base64", "68656c6c6f"], ["é", "ascii", "e9"], ["\ud800x", "utf8", "efbfbd78"],
  ]) check(`from ${text} ${encoding}`, hex(Buffer.from(text, encoding)), want);
  const b = Buffer.from([0x68, 0xc3, 0xa9, 0xff, 0xe2, 0x82]);
  check("texts", ["utf8", "latin1", "ascii", "hex", "base64", "base64url"].map((e) => b.toString(e)), ["hé\ufffd\ufffd", "hÃ©ÿâ\u0082", "hC)\x7fb\x02", "68c3a9ffe282", "aMOp/+KC", "aMOp_-KC"]);
  check("part", [b.toString("utf8", 1, 3), b.toString(undefined, 0, 1), b.toString("utf8", 4, 2), Buffer.from("6800e900", "hex").toString("utf16le")], ["é", "h", "", "hé"]);
  throws("encoding", () => Buffer.from("a", "nope"), "Unknown encoding: nope"); throws("number", () => Buffer.from(5), "Received type number (5)"); throws("undefined", () => Buffer.from(), "Received undefined");
  check("sources", [hex(Buffer.from([1, 257, -1, 2.7])), hex(Buffer.from(new Uint16Array([1, 256]))), hex(Buffer.from(new Uint8Array([1, 2, 3]).buffer, 1, 1)), hex(Buffer.from({ type: "Buffer", data: [9] })), hex(Buffer.from({ length: 2, 0: 5, 1: 6 })), hex(Buffer.from(new String("ab")))], ["0101ff02", "0100", "02", "09", "0506", "6162"]);
  const ab = new ArrayBuffer(4), view = Buffer.from(ab); view[0] = 7; check("shared", new Uint8Array(ab)[0], 7);
  const copy = Buffer.from(view); copy[0] = 8; check("copied", view[0], 7);
  check("alloc", [hex(Buffer.alloc(3)), hex(Buffer.alloc(5, "ab")), hex(Buffer.alloc(2, 1)), hex(Buffer.alloc(3, "YQ==", "base64")), Buffer.allocUnsafe(4).length], ["000000", "6162616261", "0101", "616161", 4]);
  throws("alloc", () => Buffer.alloc(-1), "out of range"); throws("alloc type", () => Buffer.alloc("5"), 'of type number');
  check("concat", [hex(Buffer.concat([Buffer.from("a"), new Uint8Array([1])])), hex(Buffer.concat([Buffer.from("abc")], 2)), hex(Buffer.concat([Buffer.from("a")], 3)), Buffer.concat([]).length], ["6101", "6162", "610000", 0]);
  check("byteLength", [Buffer.byteLength("€"), Buffer.byteLength("€", "utf16le"), Buffer.byteLength("aGk=", "base64"), Buffer.byteLength(new ArrayBuffer(3)), Buffer.byteLength("abcd", "hex")], [3, 2, 2, 3, 2]);
  check("compare", [Buffer.compare(Buffer.from("a"), Buffer.from("b")), Buffer.from("b").compare(Buffer.from("a")), Buffer.from("a").equals(new Uint8Array([97])), Buffer.from("xab").compare(Buffer.from("ab"), 0, 2, 1)], [-1, 1, true, 0]);
  const s = Buffer.from("hello"), part = s.slice(1, 3); part[0] = 65; check("slice", [s.toString(), part.toString(), s.subarray(-2).toString(), part instanceof Buffer, part.parent === s.buffer], ["hAllo", "Al", "lo", true, true]);
  check("typed methods", [s.map((x) => x + 1) instanceof Buffer, [...s.entries()][0], s.filter((x) => x > 105).toString(), Buffer.from(s).reverse().toString()], [true, [0, 104], "llo", "ollAh"]);
  const c = Buffer.alloc(6); check("copy", [s.copy(c, 1, 1, 4), c.toString("latin1"), s.copy(c, 6)], [3, "\0All\0\0", 0]);
  check("write", [c.write("€", 4), c.write("ab", 1), c.write("6162", 0, "hex"), c.toString("latin1"), Buffer.alloc(3).write("€€")], [0, 2, 2, "abbl\0\0", 3]);
  check("fill", [Buffer.alloc(4).fill("ab", 1).toString("latin1"), hex(Buffer.alloc(2).fill(300)), hex(Buffer.alloc(3).fill(Buffer.from([1, 2])))], ["\0aba", "2c2c", "010201"]);
  const t = Buffer.from("this is a buffer");
  check("search", [t.indexOf("is"), t.indexOf("is", 3), t.lastIndexOf("is"), t.indexOf(Buffer.from("buf")), t.indexOf(97), t.indexOf("zz"), t.includes("this"), t.includes("this", 4), t.lastIndexOf("is", 4), t.indexOf("is", -20), t.indexOf("")], [2, 5, 5, 10, 8, -1, true, false, 2, 2, 0]);
  const n = Buffer.alloc(8); n.writeUInt32BE(0xfeedface, 0); n.writeInt16LE(-2, 4); n.writeUInt8(200, 6); n.writeInt8(-1, 7);
  check("integers", [hex(n), n.readUInt32BE(0), n.readInt32BE(0), n.readUInt32LE(0), n.readInt16LE(4), n.readUint8(6), n.readInt8(7), n.readUIntBE(0, 6), n.readIntBE(0, 6), n.readUIntLE(1, 3)], ["feedfacefeffc8ff", 4277009102, -17958194, 3472551422, -2, 200, -1, 280298068573951, -1176908136705, 13564653]);
  n.writeDoubleBE(-1.5); const d = n.readDoubleBE(0); n.writeFloatLE(0.1); check("floats", [d, n.readFloatLE(), n.writeDoubleLE(Math.PI), n.readDoubleLE()], [-1.5, 0.10000000149011612, 8, Math.PI]);
  n.writeBigUInt64BE(0xfffffffffffffffen); check("big", [String(n.readBigUInt64BE()), String(n.readBigInt64BE()), n.writeBigInt64LE(-3n), String(n.readBigInt64LE())], ["18446744073709551614", "-2", 8, "-3"]);
  throws("range", () => n.readUInt32LE(5), 'The value of "offset" is out of range. It must be >= 0 and <= 4. Received 5'); throws("value", () => n.writeUInt8(256), '"value" is out of range'); throws("outside", () => Buffer.alloc(1).readUInt16BE(), "outside buffer bounds");
  check("swap", [hex(Buffer.from("01020304", "hex").swap16()), hex(Buffer.from("01020304", "hex").swap32())], ["02010403", "04030201"]);
  check("json", JSON.stringify(Buffer.from("hi")), '{"type":"Buffer","data":[104,105]}');
  check("old", [hex(new Buffer("ab")), Buffer(2).length, new Buffer([1, 2]) instanceof Buffer], ["6162", 2, true]);
  check("others", [isUtf8(Buffer.from([0xff])), isAscii(Buffer.from("a")), transcode(Buffer.from("€"), "utf8", "latin1").toString(), constants.MAX_LENGTH === kMaxLength, Buffer.isEncoding("UTF-8"), Buffer.isEncoding("x")], [false, true, "?", true, true, false]);
  check("text", [`${Buffer.from("abc")}`, Buffer.from("abc") + "", new TextDecoder().decode(Buffer.from("é")), String(Buffer.alloc(0))], ["abc", "abc", "é", ""]);
  check("inspect", require("util").inspect(Buffer.from("abc")), "<Buffer 61 62 63>");
  check("size", [Buffer.alloc(0).toString(), Buffer.alloc(0).equals(Buffer.alloc(0)), Buffer.from("").length], ["", true, 0]);
  check("web body", Buffer.from(crypto.getRandomValues(Buffer.alloc(4))).length, 4);
}
