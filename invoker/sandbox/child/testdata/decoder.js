import { check, throws } from "./check.js";

// The labels of https://encoding.spec.whatwg.org/#names-and-labels, by encoding.
const labels = {
  "big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
  "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
  "euc-kr": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
  "gb18030": "gb18030",
  "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
  "ibm866": "866 cp866 csibm866 ibm866",
  "iso-2022-jp": "csiso2022jp iso-2022-jp",
  "iso-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
  "iso-8859-13": "iso-8859-13 iso8859-13 iso885913",
  "iso-8859-14": "iso-8859-14 iso8859-14 iso885914",
  "iso-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
  "iso-8859-16": "iso-8859-16",
  "iso-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
  "iso-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
  "iso-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
  "iso-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
  "iso-8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
  "iso-8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek",
  "iso-8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 visual",
  "iso-8859-8-i": "csiso88598i iso-8859-8-i logical",
  "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
  "koi8-u": "koi8-ru koi8-u",
  "macintosh": "csmacintosh mac macintosh x-mac-roman",
  "replacement": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
  "shift_jis": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
  "utf-16be": "unicodefffe utf-16be",
  "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
  "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
  "windows-1250": "cp1250 windows-1250 x-cp1250",
  "windows-1251": "cp1251 windows-1251 x-cp1251",
  "windows-1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
  "windows-1253": "cp1253 windows-1253 x-cp1253",
  "windows-1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254",
  "windows-1255": "cp1255 windows-1255 x-cp1255",
  "windows-1256": "cp1256 windows-1256 x-cp1256",
  "windows-1257": "cp1257 windows-1257 x-cp1257",
  "windows-1258": "cp1258 windows-1258 x-cp1258",
  "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
  "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
  "x-user-defined": "x-user-defined",
};

// Texts with characters of several bytes, changes of state and invalid parts, and what
// https://encoding.spec.whatwg.org/#concept-encoding-process makes of them.
const texts = [
  ["utf-8", [0xef, 0xbb, 0xbf, 0x61, 0xf0, 0x9f, 0x98, 0x80, 0xe2, 0x82, 0xff, 0xef, 0xbb, 0xbf], "a\u{1f600}\ufffd\ufffd\ufeff"],
  ["utf-16le", [0xff, 0xfe, 0x3d, 0xd8, 0x00, 0xde, 0x00, 0xdc, 0x61, 0x00, 0x00, 0xd8, 0x62], "\u{1f600}\ufffda\ufffd"],
  ["utf-16be", [0xfe, 0xff, 0xd8, 0x3d, 0xde, 0x00, 0xd8, 0x00, 0x00, 0x61, 0x62], "\u{1f600}\ufffda\ufffd"],
  ["shift_jis", [0x82, 0xa0, 0x81, 0x41, 0xfd, 0xb1], "あ、\ufffdｱ"],
  ["shift_jis", [0x85, 0x40, 0xf0, 0x40, 0xfc, 0x22], "\ufffd@\ue000\ufffd\""],
  ["euc-jp", [0x8f, 0xa2, 0x41, 0x8e, 0x61, 0x8f, 0xb0, 0xa1], "\ufffdA\ufffda\u4e02"],
  ["iso-2022-jp", [0x1b, 0x24, 0x42, 0x1b, 0x28, 0x42, 0x1b, 0x24, 0x41, 0x1b, 0x28, 0x4a, 0x5c], "\ufffd\ufffd$A¥"],
  ["gb18030", [0xa1, 0x40, 0xd7, 0x3a, 0x81, 0x30, 0x81, 0x41, 0x81, 0x35, 0xf4, 0x37], "\ue4c6\ufffd:\ufffd0\u4e04\ue7c7"],
  ["big5", [0xfe, 0x7f, 0x81, 0x40], "\ufffd\u007f\ufffd@"],
  ["euc-kr", [0xc7, 0x41, 0xfe], "\ufffdA\ufffd"],
  ["euc-jp", [0xa4, 0xa2, 0x8e, 0xb1, 0x61], "あｱa"],
  ["iso-2022-jp", [0x1b, 0x24, 0x42, 0x24, 0x22, 0x1b, 0x28, 0x42, 0x61], "あa"],
  ["gb18030", [0x81, 0x30, 0x81, 0x30, 0xc4, 0xe3, 0x61], "\u0080你a"],
  ["gbk", [0xc4, 0xe3, 0x81, 0x30, 0x81, 0x30], "你\u0080"],
  ["big5", [0xa7, 0x41, 0x88, 0x62, 0x61], "你\u00ca\u0304a"],
  ["euc-kr", [0xb0, 0xa1, 0x61, 0xb0], "가a\ufffd"],
  ["koi8-r", [0xf0, 0xd2, 0xc9], "При"],
  ["windows-1252", [0x80, 0x81, 0xe9], "€\u0081é"],
  ["windows-1253", [0xe1, 0xaa], "α\ufffd"],
  ["x-mac-cyrillic", [0x80, 0xff], "А€"],
  ["x-user-defined", [0x61, 0x80, 0xff], "a\uf780\uf7ff"],
];

// chunked decodes bytes in chunks of the given size.
function chunked(decoder, bytes, size) {
  let text = "";
  for (let i = 0; i < bytes.length; i += size) text += decoder.decode(Uint8Array.from(bytes.slice(i, i + size)), { stream: true });
  return text + decoder.decode();
}

export default function () {
  // "get an encoding": ASCII white space around a label and its case do not count.
  for (const [name, list] of Object.entries(labels)) {
    for (const label of list.split(" ")) {
      for (const form of [label, label.toUpperCase(), "\t\n\f\r " + label + " "]) {
        if (name === "replacement") throws(form, () => new TextDecoder(form), "RangeError");
        else check(form, new TextDecoder(form).encoding, name);
      }
    }
  }
  for (const label of ["", "utf-7", "koi8-r\u00a0", "\u000bkoi8-r", "\u212aoi8-r", "utf-8\0"]) {
    throws(JSON.stringify(label), () => new TextDecoder(label), "RangeError");
  }
  throws("options", () => new TextDecoder("utf-8", 1), "TypeError");

  // decode(): any chunking has the same result, and a decoder can be used again.
  for (const [name, bytes, want] of texts) {
    const decoder = new TextDecoder(name);
    check(name + " whole", decoder.decode(Uint8Array.from(bytes)), want);
    for (let size = 1; size <= bytes.length; size++) check(name + " by " + size, chunked(decoder, bytes, size), want);
    const fatal = () => new TextDecoder(name, { fatal: true }).decode(Uint8Array.from(bytes));
    if (want.includes("\ufffd")) throws(name + " fatal", fatal, "TypeError");
    else check(name + " fatal", fatal(), want);
  }
  // Every byte of the encodings of one byte is one character.
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  for (const name of Object.keys(labels).filter((n) => /^(iso-8859|windows|koi8|ibm|mac|x-)/.test(n))) {
    check(name + " length", new TextDecoder(name).decode(all).length, 256);
  }
  check("U+FFFD of gb18030 is valid", new TextDecoder("gb18030", { fatal: true }).decode(Uint8Array.of(0x84, 0x31, 0xa4, 0x37)), "\ufffd");
  check("mark kept", chunked(new TextDecoder("utf-16be", { ignoreBOM: true }), [0xfe, 0xff, 0, 0x61], 1), "\ufeffa");

  // An error of a fatal decoder forgets what came before it.
  const fatal = new TextDecoder("utf-8", { fatal: true });
  throws("fatal in a stream", () => fatal.decode(Uint8Array.of(0xff, 0xe2), { stream: true }), "TypeError");
  check("after the error", fatal.decode(Uint8Array.of(0x61)), "a");

  // A getter of the options may detach the input.
  const input = new Uint8Array(8);
  const decoder = new TextDecoder();
  let got;
  try { got = decoder.decode(input, { get stream() { input.buffer.transfer(0); return false; } }); } catch (e) { got = e.name; }
  check("detached by a getter", got === "" || got === "TypeError", true);
}
