// Writes what Node's Intl.Collator and Intl.Segmenter return, in the form of record.mjs:
//
//	node record-texts.mjs
import fs from "node:fs";
import zlib from "node:zlib";

const lines = [`# Node ${process.version}, ICU ${process.versions.icu}, CLDR ${process.versions.cldr}, Unicode ${process.versions.unicode}`];
const put = (...row) => lines.push(row.map((v) => (typeof v === "string" ? v : JSON.stringify(v))).join("\t"));

const locales = ["en-US", "de", "fr", "es", "sv", "cs", "pl", "da", "tr", "ja", "zh-CN", "ru"];
const lists = {
  accents: ["cote", "côte", "coté", "côté", "Cote", "péché", "peche", "pêche", "resume", "résumé", "Résumé", "naïve", "naive", "zebra", "über", "uber", "Über"],
  letters: ["a", "A", "b", "B", "z", "Z", "ä", "Ä", "å", "Å", "æ", "ø", "ö", "Ö", "ü", "ñ", "n", "o", "č", "c", "ch", "ci", "h", "d", "ď", "ř", "r", "š", "s", "ß", "ss", "st", "ž", "ł", "l", "ll", "lz", "ó", "ı", "i", "İ", "I", "ğ", "g", "ş", "ç", "þ", "ð", "aa", "ab"],
  numbers: ["item 10", "item 2", "item 1", "10", "9", "09", "1.5", "1,000", "a100", "a20", "a3", "-1", "0"],
  marks: ["co-op", "coop", "co op", "CO-OP", "co.op", "co_op", "a b", "ab", "a-c", "$1", "€2", "(x)", "x", "\"q\"", "q", "%", "@"],
  scripts: ["яблоко", "Ёлка", "елка", "ёлка", "еж", "арбуз", "あ", "ア", "ぁ", "い", "カ", "が", "か", "山", "川", "中", "一", "文", "α", "ω", "א", "ا", "zebra"],
  wide: ["Ａ", "A", "ａ", "a", "ﬁ", "fi", "½", "1", "②", "2", "é", "e\u0301", "ｱ", "ア"],
};
const options = [{}, { sensitivity: "base" }, { sensitivity: "accent" }, { sensitivity: "case" }, { numeric: true }, { caseFirst: "upper" }, { caseFirst: "lower" }, { ignorePunctuation: true }, { usage: "search" }];
const pairs = [["a", "A"], ["a", "á"], ["a", "Á"], ["a", "b"], ["ss", "ß"], ["ae", "æ"], ["o", "ö"], ["o", "ø"], ["i", "ı"], ["か", "カ"], ["か", "が"], ["Ａ", "a"], ["co-op", "coop"], ["a b", "ab"], ["9", "10"], ["v", "w"], ["é", "e\u0301"], ["e", "ё"], ["е", "ё"], ["n", "ñ"]];
for (const l of locales) for (const o of options) {
  const c = new Intl.Collator(l, o);
  for (const list of Object.values(lists)) put("sort", l, o, list, list.slice().sort(c.compare).join("|"));
  for (const [a, b] of pairs) put("compare", l, o, [a, b], String(c.compare(a, b)));
}
// Orders that a keyword names.
for (const l of ["de-u-co-phonebk", "es-u-co-trad", "sv-u-co-trad", "zh-u-co-stroke", "zh-u-co-zhuyin", "zh-u-co-pinyin", "de-u-kn", "en-u-kf-upper", "en-u-kf-lower", "en-u-kn-false"]) {
  const c = new Intl.Collator(l);
  for (const list of Object.values(lists)) put("sort", l, {}, list, list.slice().sort(c.compare).join("|"));
}

const texts = ["", "Hello, world! It's 3.14 o'clock (sharp).", "e\u0301a\u0308 n\u0303o", "👨‍👩‍👧👍🏽🇩🇪🇫🇷🏳️‍🌈 1️⃣ ❤️", "a\r\nb\n\nc\u2028d", "Dr. Smith went to the U.S. He paid $1,234.50. Really?! \"Yes,\" he said. ok...", "C'est l'été. Où est-il ? Ici !",
  "Das ist z. B. gut. Am 3. Oktober. Ende", "foo_bar foo-bar foo.bar user@example.com http://a.b/c?d=e", "Привет, мир! Как дела? Хорошо.", "안녕하세요 세계. 반갑습니다!", "กำลัง นั้น ก็", "नमस्ते दुनिया। क्षत्रिय", "مرحبا بالعالم؟ نعم.", "שלום עולם! צה״ל", "カタカナ ひらがな", "\u{1f469}\u{1f3fb}\u200d\u{1f680}x\u0300\u0301", "각한글ㄱㅏ", "1. a 2. b", "a.b. c d.E f", "x\u00adyz a\u200bb", "\ud83d",
  "これは日本語です。テストです！", "我爱北京天安门。你好吗？", "สวัสดีชาวโลก ยินดีต้อนรับ", "ខ្ញុំស្រលាញ់", "東京都に行く"];
for (const l of locales) for (const granularity of ["grapheme", "word", "sentence"]) for (const text of texts) {
  const s = new Intl.Segmenter(l, { granularity });
  put("segment", l, { granularity }, JSON.stringify(text), JSON.stringify([...s.segment(text)].map((x) => x.index + (x.isWordLike ? "w" : ""))));
}
fs.writeFileSync(new URL("texts.tsv.gz", import.meta.url), zlib.gzipSync(lines.join("\n") + "\n", { level: 9 }));
console.log(lines.length, "lines");
