// Writes what Node's Intl returns for many options, which the tests of package intl compare
// with its own results:
//
//	node record.mjs
//
// A line is a kind, locale, options as JSON, value as JSON, and result, with tabs between.
// The first line names the versions.
import fs from "node:fs";
import zlib from "node:zlib";

const locales = ["en-US", "en-GB", "de", "fr", "es", "it", "pt-BR", "nl", "ja", "zh-CN", "ko", "ru"];
const more = ["ar-EG", "hi", "sv", "pl", "tr", "zh-TW", "de-AT", "en-AU", "es-MX", "fr-CA", "he", "uk", "cs", "da", "fi", "nb"];
const zones = ["UTC", "Europe/Berlin", "Europe/London", "Europe/Paris", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul", "Europe/Dublin",
  "Europe/Kyiv", "America/New_York", "America/Chicago", "America/Denver", "America/Phoenix", "America/Los_Angeles", "America/Anchorage",
  "America/Sao_Paulo", "America/St_Johns", "America/Toronto", "America/Mexico_City", "Pacific/Honolulu", "Pacific/Auckland", "Pacific/Apia",
  "Australia/Sydney", "Australia/Lord_Howe", "Asia/Tokyo", "Asia/Shanghai", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tehran", "Africa/Cairo"];
// A winter's day, a summer's, before and after Europe's and America's clocks change, and before 1970.
const instants = [1705314645678, 1720706400000, 1711846799000, 1711846800000, 1730005200000, 1710053999000, 1710054000000, -1000000000000];

const lines = [`# Node ${process.version}, ICU ${process.versions.icu}, CLDR ${process.versions.cldr}, time zones ${process.versions.tz}`];
const put = (...row) => lines.push(row.map((v) => (typeof v === "string" ? v : JSON.stringify(v))).join("\t"));
const date = (l, o, t) => {
  const f = new Intl.DateTimeFormat(l, o);
  put("date", l, o, t, f.format(t));
};
for (const l of locales) for (const timeZone of zones) for (const t of instants) {
  date(l, { timeZone, dateStyle: "short", timeStyle: "long" }, t);
  if (t === instants[0] || t === instants[1]) {
    for (const timeZoneName of ["short", "long", "shortOffset", "longOffset"]) date(l, { timeZone, hour: "numeric", minute: "2-digit", timeZoneName }, t);
  }
}
const styles = ["full", "long", "medium", "short"];
const options = [{}];
for (const dateStyle of styles) options.push({ dateStyle }, { timeStyle: dateStyle }, { timeStyle: dateStyle, hour12: true }, { timeStyle: dateStyle, hourCycle: "h23" });
for (const dateStyle of styles) for (const timeStyle of styles) options.push({ dateStyle, timeStyle });
for (const month of ["numeric", "2-digit", "long", "short", "narrow"]) {
  options.push({ month }, { year: "numeric", month }, { month, day: "numeric" }, { year: "numeric", month, day: "numeric" }, { year: "2-digit", month, day: "2-digit" },
    { weekday: "short", year: "numeric", month, day: "numeric" }, { weekday: "long", month, day: "numeric" }, { weekday: "long", year: "numeric", month, day: "numeric", hour: "numeric", minute: "numeric" },
    { era: "short", year: "numeric", month, day: "numeric" }, { month, day: "numeric", hour: "numeric", minute: "2-digit" });
}
for (const weekday of ["long", "short", "narrow"]) options.push({ weekday }, { weekday, day: "numeric" }, { weekday, hour: "numeric" });
options.push({ year: "numeric" }, { year: "2-digit" }, { day: "numeric" }, { day: "2-digit" }, { hour: "numeric" }, { hour: "2-digit" }, { minute: "numeric" }, { second: "2-digit" },
  { hour: "numeric", minute: "numeric" }, { hour: "2-digit", minute: "2-digit", second: "2-digit" }, { minute: "2-digit", second: "2-digit" },
  { hour: "numeric", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 }, { second: "numeric", fractionalSecondDigits: 2 }, { fractionalSecondDigits: 1 },
  { hour: "numeric", hour12: true }, { hour: "numeric", hour12: false }, { hour: "2-digit", minute: "2-digit", hourCycle: "h11" }, { hour: "numeric", minute: "2-digit", hourCycle: "h24" },
  { hour: "numeric", dayPeriod: "long" }, { hour: "numeric", minute: "2-digit", dayPeriod: "short", hour12: true }, { dayPeriod: "narrow" },
  { era: "long" }, { era: "narrow", year: "numeric" }, { timeZoneName: "short" }, { timeZoneName: "long", year: "numeric" }, { hour: "numeric", timeZoneName: "short" },
  { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: "America/New_York" });
for (const l of [...locales, ...more]) for (const o of options) for (const t of [instants[0], instants[1]]) date(l, { timeZone: "Europe/Berlin", ...o }, t);
for (const l of ["en-US", "de", "ja", "ru"]) for (const o of options) {
  const f = new Intl.DateTimeFormat(l, o);
  put("parts", l, o, instants[0], f.formatToParts(instants[0]).map((p) => p.type + "=" + p.value).join("|"));
  const { locale, calendar, numberingSystem, timeZone, ...rest } = f.resolvedOptions();
  put("resolved", l, o, instants[0], rest);
}
const ranges = [{}, ...styles.map((dateStyle) => ({ dateStyle })), { timeStyle: "short" }, { dateStyle: "short", timeStyle: "short" }, { month: "long", day: "numeric" },
  { year: "numeric", month: "short", day: "numeric" }, { weekday: "short", month: "short", day: "numeric" }, { hour: "numeric" }, { hour: "numeric", minute: "2-digit" },
  { year: "numeric", month: "long" }, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" }];
for (const l of locales) for (const o of ranges) for (const d of [1000, 300e3, 10800e3, 2 * 864e5, 40 * 864e5, 400 * 864e5]) {
  const [a, b] = [instants[0], instants[0] + d];
  put("range", l, o, [a, b], new Intl.DateTimeFormat(l, o).formatRange(a, b));
}
fs.writeFileSync(new URL("dates.tsv.gz", import.meta.url), zlib.gzipSync(lines.join("\n") + "\n", { level: 9 }));
console.log(lines.length, "lines");
