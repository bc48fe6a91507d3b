// Writes what Node's Intl returns for numbers, in the form of record.mjs:
//
//	node record-numbers.mjs
import fs from "node:fs";
import zlib from "node:zlib";

const locales = ["en-US", "en-GB", "de", "fr", "es", "it", "pt-BR", "nl", "ja", "zh-CN", "ko", "ru", "ar-EG", "hi", "sv", "pl", "de-CH", "en-IN", "pt-PT", "cs"];
const lines = [`# Node ${process.version}, ICU ${process.versions.icu}, CLDR ${process.versions.cldr}, time zones ${process.versions.tz}`];
const put = (...row) => lines.push(row.map((v) => (typeof v === "string" ? v : JSON.stringify(v))).join("\t"));
const numbers = [0, 1, -1, 2, 5, 0.5, 1.005, -1234.5678, 12345, 1234567.891, 0.000123, 99.995, 999999, 1e9, 1.5e12, 1e21, 21, 1000, 9999];
const options = [{}, { style: "percent" }, { style: "percent", maximumFractionDigits: 2 }, { minimumFractionDigits: 2 }, { maximumFractionDigits: 0 },
  { maximumSignificantDigits: 3 }, { minimumSignificantDigits: 4 }, { minimumIntegerDigits: 5 }, { useGrouping: false }, { useGrouping: "min2" }, { useGrouping: "always" },
  { signDisplay: "always" }, { signDisplay: "exceptZero" }, { signDisplay: "never" }, { signDisplay: "negative" },
  { notation: "compact" }, { notation: "compact", compactDisplay: "long" }, { notation: "compact", maximumFractionDigits: 1 }, { notation: "compact", style: "currency", currency: "EUR" },
  { notation: "scientific" }, { notation: "engineering" }, { roundingMode: "floor", maximumFractionDigits: 1 }, { roundingMode: "halfEven", maximumFractionDigits: 2 },
  { roundingIncrement: 5, minimumFractionDigits: 2, maximumFractionDigits: 2 }, { trailingZeroDisplay: "stripIfInteger", minimumFractionDigits: 2 },
  { maximumFractionDigits: 1, maximumSignificantDigits: 3, roundingPriority: "lessPrecision" },
  ...["USD", "EUR", "GBP", "JPY", "CHF", "INR", "KWD"].map((currency) => ({ style: "currency", currency })),
  { style: "currency", currency: "USD", currencyDisplay: "code" }, { style: "currency", currency: "USD", currencyDisplay: "name" }, { style: "currency", currency: "CAD", currencyDisplay: "narrowSymbol" },
  { style: "currency", currency: "EUR", currencySign: "accounting" }, { style: "currency", currency: "EUR", minimumFractionDigits: 0 },
  ...["kilometer", "celsius", "percent", "byte", "megabyte", "hour", "day", "kilogram", "kilometer-per-hour", "liter-per-kilometer", "gram-per-meter"].flatMap((unit) =>
    ["short", "long", "narrow"].map((unitDisplay) => ({ style: "unit", unit, unitDisplay })))];
for (const l of locales) for (const o of options) {
  const f = new Intl.NumberFormat(l, o);
  for (const n of numbers) {
    if (n === 1e21 && o.style === "unit") continue;
    put("number", l, o, n, f.format(n));
  }
  if (l === "en-US" || l === "de" || l === "ja") put("parts", l, o, -1234567.891, f.formatToParts(-1234567.891).map((p) => p.type + "=" + p.value).join("|"));
}
for (const l of locales) for (const type of ["cardinal", "ordinal"]) for (const n of [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 21, 22, 23, 100, 101, 1000000, 1.5, 0.1]) put("plural", l, { type }, n, new Intl.PluralRules(l, { type }).select(n));
for (const l of locales) for (const type of ["conjunction", "disjunction", "unit"]) for (const style of ["long", "short", "narrow"]) for (const n of [0, 1, 2, 3, 4]) {
  const list = ["A", "B", "C", "D"].slice(0, n);
  put("list", l, { type, style }, list, new Intl.ListFormat(l, { type, style }).format(list));
}
for (const l of locales) for (const numeric of ["always", "auto"]) for (const style of ["long", "short", "narrow"]) for (const unit of ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]) for (const n of [-2, -1, 0, 1, 2, 5, 1000.5]) {
  put("relative", l, { numeric, style }, [n, unit], new Intl.RelativeTimeFormat(l, { numeric, style }).format(n, unit));
}
for (const l of locales) for (const [type, codes] of [["language", ["de", "en-US", "fr-CA", "zh-Hant", "pt-BR", "sr-Latn", "ja", "es-419"]], ["region", ["US", "DE", "419", "GB", "JP"]], ["script", ["Latn", "Cyrl", "Hant"]], ["currency", ["USD", "EUR", "JPY"]]]) {
  for (const code of codes) put("name", l, { type }, code, new Intl.DisplayNames(l, { type }).of(code));
}
fs.writeFileSync(new URL("numbers.tsv.gz", import.meta.url), zlib.gzipSync(lines.join("\n") + "\n", { level: 9 }));
console.log(lines.length, "lines");
