import { check, throws } from "./check.js";

export default function () {
  const noon = new Date(Date.UTC(2024, 6, 11, 12, 30, 45, 678));
  const berlin = new Intl.DateTimeFormat("de-DE", { dateStyle: "full", timeStyle: "long", timeZone: "Europe/Berlin" });
  check("format", berlin.format(noon), "Donnerstag, 11. Juli 2024 um 14:30:45 MESZ");
  check("bound", [noon].map(berlin.format), ["Donnerstag, 11. Juli 2024 um 14:30:45 MESZ"]);
  check("one function", berlin.format === berlin.format, true);
  check("without new", Intl.DateTimeFormat().resolvedOptions(), { locale: "en-US", calendar: "gregory", numberingSystem: "latn", timeZone: "UTC", year: "numeric", month: "numeric", day: "numeric" });
  check("toLocaleString", noon.toLocaleString(), "7/11/2024, 12:30:45 PM");
  check("toLocaleDateString", noon.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "long" }), "Thu 11 July");
  check("toLocaleTimeString", noon.toLocaleTimeString("ja-JP", { timeZone: "Asia/Tokyo" }), "21:30:45");
  check("invalid date", new Date(NaN).toLocaleString(), "Invalid Date");
  check("parts", new Intl.DateTimeFormat("en", { hour: "numeric", timeZone: "America/New_York" }).formatToParts(noon),
    [{ type: "hour", value: "8" }, { type: "literal", value: "\u202f" }, { type: "dayPeriod", value: "AM" }]);
  check("offset", new Intl.DateTimeFormat("en-GB", { timeStyle: "long", timeZone: "+05:30" }).format(noon), "18:00:45 GMT+5:30");
  check("range", new Intl.DateTimeFormat("en", { dateStyle: "medium" }).formatRange(noon, +noon + 864e5 * 3), "Jul 11\u2009–\u200914, 2024");
  check("supported", Intl.DateTimeFormat.supportedLocalesOf(["tlh", "de-AT", "zh-TW"]), ["de-AT", "zh-TW"]);
  check("tag", [Object.prototype.toString.call(Intl), Object.prototype.toString.call(berlin)], ["[object Intl]", "[object Intl.DateTimeFormat]"]);
  check("canonical", Intl.getCanonicalLocales(["EN-us", "iw", "de-u-nu-latn-ca-islamicc"]), ["en-US", "he", "de-u-ca-islamic-civil-nu-latn"]);
  check("fall back", new Intl.DateTimeFormat("tlh").resolvedOptions().locale, "en-US");
  check("subclass", new (class extends Intl.DateTimeFormat {})("de").format(noon), "11.7.2024");
  throws("zone", () => new Intl.DateTimeFormat("en", { timeZone: "Mars/Base" }), "RangeError: Invalid time zone specified: Mars/Base");
  throws("option", () => new Intl.DateTimeFormat("en", { year: "long" }), "RangeError: Value long out of range for Intl.DateTimeFormat options property year");
  throws("locale", () => new Intl.DateTimeFormat("not a tag"), "RangeError: Incorrect locale information provided");
  throws("style and field", () => new Intl.DateTimeFormat("en", { dateStyle: "full", year: "numeric" }), "TypeError");
  throws("time", () => berlin.format(NaN), "RangeError: Invalid time value");
  throws("receiver", () => Intl.DateTimeFormat.prototype.formatToParts.call({}), "TypeError");

  const reads = [];
  new Intl.DateTimeFormat("en", new Proxy({}, { get(_, name) { reads.push(name); } }));
  check("order of options", reads.join(" "), "localeMatcher calendar numberingSystem hour12 hourCycle timeZone weekday era year month day dayPeriod hour minute second fractionalSecondDigits timeZoneName formatMatcher dateStyle timeStyle");

  check("number", new Intl.NumberFormat("de-DE", { style: "currency", currency: "EUR" }).format(1234.5), "1.234,50\u00a0€");
  check("big", new Intl.NumberFormat("en").format(12345678901234567890n), "12,345,678,901,234,567,890");
  check("text", new Intl.NumberFormat("en", { maximumFractionDigits: 20 }).format("0.12345678901234567890"), "0.1234567890123456789");
  check("toLocaleString of numbers", [(1e6).toLocaleString(), 5n.toLocaleString("ar-EG"), [1.5, new Date(0)].toLocaleString("de")], ["1,000,000", "٥", "1,5,1.1.1970, 00:00:00"]);
  check("number parts", new Intl.NumberFormat("en", { style: "percent" }).formatToParts(0.5), [{ type: "integer", value: "50" }, { type: "percentSign", value: "%" }]);
  check("number options", new Intl.NumberFormat("en", { notation: "compact" }).resolvedOptions(), { locale: "en", numberingSystem: "latn", style: "decimal", minimumIntegerDigits: 1,
    minimumFractionDigits: 0, maximumFractionDigits: 0, minimumSignificantDigits: 1, maximumSignificantDigits: 2, useGrouping: "min2", notation: "compact", compactDisplay: "short",
    signDisplay: "auto", roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "morePrecision", trailingZeroDisplay: "auto" });
  check("number range", new Intl.NumberFormat("en", { style: "currency", currency: "USD" }).formatRange(3, 5), "$3.00 – $5.00");
  check("plural", [new Intl.PluralRules("en", { type: "ordinal" }).select(22), new Intl.PluralRules("ru").select(22)], ["two", "few"]);
  check("list", new Intl.ListFormat("en", { type: "disjunction" }).format(new Set(["a", "b", "c"])), "a, b, or c");
  check("relative", new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-1, "days"), "yesterday");
  check("relative parts", new Intl.RelativeTimeFormat("de").formatToParts(3, "hour"), [{ type: "literal", value: "in " }, { type: "integer", value: "3", unit: "hour" }, { type: "literal", value: " Stunden" }]);
  check("names", [new Intl.DisplayNames("de", { type: "region" }).of("us"), new Intl.DisplayNames("en", { type: "language", fallback: "none" }).of("qaa")], ["Vereinigte Staaten", undefined]);
  throws("currency", () => new Intl.NumberFormat("en", { style: "currency" }), "TypeError: Currency code is required");
  throws("unit", () => new Intl.NumberFormat("en", { style: "unit", unit: "parsec" }), "RangeError");
  throws("digits", () => (1).toLocaleString("en", { maximumFractionDigits: 101 }), "RangeError: maximumFractionDigits value is out of range.");
  throws("without new", () => Intl.PluralRules("en"), "TypeError: Constructor Intl.PluralRules requires 'new'");
  throws("names without a type", () => new Intl.DisplayNames("en", {}), "TypeError");

  check("compare", ["z", "a", "ä", "B", "b10", "b9"].sort(new Intl.Collator("de", { numeric: true }).compare), ["a", "ä", "B", "b9", "b10", "z"]);
  check("sensitivity", ["base", "accent", "case", "variant"].map((sensitivity) => [["a", "á"], ["a", "A"], ["a", "b"]].map(([x, y]) => x.localeCompare(y, "en", { sensitivity }))),
    [[0, 0, -1], [-1, 0, -1], [0, -1, -1], [-1, -1, -1]]);
  check("localeCompare", ["ä".localeCompare("z", "sv"), "ä".localeCompare("z", "de"), "a".localeCompare("a")], [1, -1, 0]);
  check("case", ["i".toLocaleUpperCase("tr"), "I".toLocaleLowerCase("tr"), "ß".toLocaleUpperCase()], ["İ", "ı", "SS"]);
  const l = new Intl.Locale("en-latn-us-u-ca-buddhist", { hourCycle: "h23", numeric: true });
  check("locale", [String(l), l.baseName, l.language, l.script, l.region, l.calendar, l.hourCycle, l.numeric, l.collation], ["en-Latn-US-u-ca-buddhist-hc-h23-kn", "en-Latn-US", "en", "Latn", "US", "buddhist", "h23", true, undefined]);
  check("maximize", [String(new Intl.Locale("zh-TW").maximize()), String(new Intl.Locale("en-Latn-US").minimize())], ["zh-Hant-TW", "en"]);
  check("week", [new Intl.Locale("en-US").getWeekInfo(), new Intl.Locale("ar-EG").getTextInfo()], [{ firstDay: 7, weekend: [6, 7], minimalDays: 1 }, { direction: "rtl" }]);
  const iterator = Array.prototype[Symbol.iterator], split = new Intl.Segmenter().segment("ab");
  delete Array.prototype[Symbol.iterator];
  let failed;
  try { split[Symbol.iterator](); } catch (e) { failed = e.name; }
  Object.defineProperty(Array.prototype, Symbol.iterator, { value: iterator, writable: true, configurable: true });
  check("segments without iterators of arrays", failed, "TypeError");
  check("strings beyond the range", ["1e9000000000000000000", "-1e2000000000", "1e-2000000000", "1e400"].map((s) => new Intl.NumberFormat("en").format(s)), ["∞", "-∞", "0", "∞"]);
  check("locale as an argument", new Intl.NumberFormat(new Intl.Locale("de")).format(1.5), "1,5");
  check("graphemes", [...new Intl.Segmenter().segment("a👨‍👩‍👧é")].map((s) => [s.segment, s.index]), [["a", 0], ["👨‍👩‍👧", 1], ["é", 9]]);
  check("words", [...new Intl.Segmenter("en", { granularity: "word" }).segment("Hi, you")].map((s) => [s.segment, s.isWordLike]), [["Hi", true], [",", false], [" ", false], ["you", true]]);
  check("containing", new Intl.Segmenter("en", { granularity: "sentence" }).segment("One. Two.").containing(6), { segment: "Two.", index: 5, input: "One. Two." });
  check("values", [Intl.supportedValuesOf("timeZone").length > 400, Intl.supportedValuesOf("currency").includes("EUR")], [true, true]);
  throws("values", () => Intl.supportedValuesOf("x"), "RangeError: Invalid key : x");
  throws("locale", () => new Intl.Locale(), "TypeError");
}
