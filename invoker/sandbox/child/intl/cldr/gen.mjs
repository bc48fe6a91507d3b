// Writes cldr.bin, the table of the Common Locale Data Repository that package cldr reads.
// Run it where the npm packages are installed that hold the data:
//
//	npm install cldr-core@48.2.0 cldr-dates-full@48.2.0 cldr-numbers-full@48.2.0 \
//	  cldr-misc-full@48.2.0 cldr-units-full@48.2.0 cldr-localenames-full@48.2.0 cldr-bcp47@48.2.0
//	node gen.mjs node_modules cldr.bin
//
// The file begins with a line for each blob, NAME OFFSET LENGTH, and an empty line. The blobs
// follow, each compressed by itself. A section has a list of keys (NAME "SECTION keys"), and
// for each locale a list of values in the order of the keys (NAME "SECTION LOCALE"). An empty
// value is that of the parent locale, and a single U+0001 is none.
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";

const [root, out] = process.argv.slice(2);
const json = (...parts) => JSON.parse(fs.readFileSync(path.join(root, ...parts), "utf8"));
const supplemental = (name) => json("cldr-core/supplemental", name + ".json").supplemental;

const levels = { nb: "modern", ...json("cldr-core/coverageLevels.json").coverageLevels };
const parents = supplemental("parentLocales").parentLocales.parentLocale;
const full = json("cldr-core/availableLocales.json").availableLocales.full.filter((l) => l !== "und");
const parentOf = (l) => parents[l] ? (parents[l] === "root" ? "und" : parents[l]) : l.includes("-") ? l.slice(0, l.lastIndexOf("-")) : "und";
const levelOf = (l) => levels[l] ?? (l.includes("-") ? levelOf(l.slice(0, l.lastIndexOf("-"))) : undefined);
const locales = ["und", ...full.filter((l) => levelOf(l) === "modern" && !/-(polyton|valencia|tarask|scotland|posix)/.test(l) &&
  fs.existsSync(path.join(root, "cldr-localenames-full/main", l, "languages.json")))];

// value unwraps the values that the JSON form keeps in objects.
const value = (v) => (typeof v === "object" && v !== null && "_value" in v ? v._value : v);
const flatten = (to, prefix, v) => {
  v = value(v);
  if (typeof v === "object") {
    for (const k in v) {
      if (!k.startsWith("_") && !/-alt-(ascii|variant|menu|stand)/.test(k)) flatten(to, prefix ? prefix + "/" + k : k, v[k]);
    }
  } else to[prefix] = String(v).replaceAll("∅∅∅", "");
};

const units = ("acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit gigabyte gram hectare hour inch " +
  "kilobit kilobyte kilogram kilometer liter megabit megabyte meter microsecond mile mile-scandinavian milliliter millimeter " +
  "millisecond minute month nanosecond ounce percent petabyte pound second stone terabit terabyte week yard year").split(" ");

const tender = new Set(Object.values((supplemental("currencyData").currencyData ?? supplemental("currencyData")).region)
  .flatMap((list) => list.flatMap((c) => Object.entries(c))).filter(([, use]) => use._to === undefined && use._tender !== "false").map(([code]) => code));

const sections = {
  date(l, to) {
    const g = json("cldr-dates-full/main", l, "ca-gregorian.json").main[l].dates.calendars.gregorian;
    for (const k of ["months", "days", "dayPeriods", "eras", "dateFormats", "timeFormats", "dateTimeFormats-atTime"]) {
      flatten(to, k, g[k]);
    }
    const f = { ...g.dateTimeFormats };
    f.availableFormats = Object.fromEntries(Object.entries(f.availableFormats).filter(([k]) => !/[wWQ]/.test(k)));
    flatten(to, "dateTimeFormats", f);
    const fields = json("cldr-dates-full/main", l, "dateFields.json").main[l].dates.fields;
    for (const k of ["era", "year", "quarter", "month", "week", "day", "weekday", "dayperiod", "hour", "minute", "second", "zone", "weekOfYear"]) {
      for (const w of ["", "-short", "-narrow"]) if (fields[k + w]?.displayName) to[`name/${k}${w}`] = fields[k + w].displayName;
    }
  },
  zone(l, to) {
    const z = json("cldr-dates-full/main", l, "timeZoneNames.json").main[l].dates.timeZoneNames;
    flatten(to, "", z);
    for (const k in to) if (k.endsWith("/_type")) delete to[k];
  },
  number(l, to) {
    const n = json("cldr-numbers-full/main", l, "numbers.json").main[l].numbers;
    for (const k in n) {
      if (/^(minimalPairs|rationalFormats|scientificFormats)/.test(k)) continue;
      const m = /-numberSystem-(.+)$/.exec(k);
      if (m && m[1] !== "latn" && m[1] !== n.defaultNumberingSystem && m[1] !== n.otherNumberingSystems.native) continue;
      flatten(to, k.replace("-numberSystem", ""), n[k]);
    }
  },
  currency(l, to) {
    const c = json("cldr-numbers-full/main", l, "currencies.json").main[l].numbers.currencies;
    flatten(to, "", c);
    // Currencies of the past have no plural forms here.
    for (const k in to) if (k.includes("-count-") && !tender.has(k.slice(0, 3))) delete to[k];
  },
  unit(l, to) {
    const u = json("cldr-units-full/main", l, "units.json").main[l].units;
    for (const width of ["long", "short", "narrow"]) {
      to[width + "/per"] = u[width].per.compoundUnitPattern;
      for (const k in u[width]) {
        const name = k.slice(k.indexOf("-") + 1);
        if (!units.includes(name) && !["kilometer-per-hour", "mile-per-hour", "meter-per-second", "liter-per-kilometer", "mile-per-gallon"].includes(name)) continue;
        for (const f in u[width][k]) {
          if (/^unitPattern-count-[a-z]+$/.test(f)) to[`${width}/${name}/${f.slice(18)}`] = u[width][k][f];
          if (f === "perUnitPattern") to[`${width}/${name}/per`] = u[width][k][f];
          if (f === "displayName") to[`${width}/${name}/name`] = u[width][k][f];
        }
      }
    }
  },
  list(l, to) {
    flatten(to, "", json("cldr-misc-full/main", l, "listPatterns.json").main[l].listPatterns);
    const fields = json("cldr-dates-full/main", l, "dateFields.json").main[l].dates.fields;
    for (const k in fields) {
      if (!/^(year|quarter|month|week|day|hour|minute|second)(-short|-narrow)?$/.test(k)) continue;
      for (const f in fields[k]) if (f.startsWith("relative")) flatten(to, `relative/${k}/${f}`, fields[k][f]);
    }
  },
  name(l, to) {
    if (l === "und") return;
    const d = "cldr-localenames-full/main";
    const pick = (file, kind) => json(d, l, file + ".json").main[l].localeDisplayNames[kind];
    const add = (kind, table) => {
      for (const k in table) if (!/-alt-|^[A-Za-z]+-(menu)/.test(k) || /-alt-(short|narrow|long)$/.test(k)) to[kind + "/" + k] = table[k];
    };
    const languages = pick("languages", "languages");
    add("language", Object.fromEntries(Object.entries(languages).filter(([k]) => /^[a-z]{2}(-|$)/.test(k) || levels[k] === "modern")));
    add("region", pick("territories", "territories"));
    add("script", pick("scripts", "scripts"));
    flatten(to, "pattern", pick("localeDisplayNames", "localeDisplayPattern"));
    const types = pick("localeDisplayNames", "types");
    if (types?.calendar) add("calendar", types.calendar);
  },
};

const blobs = [];
const index = [];
let size = 0;
const put = (name, text) => {
  const blob = zlib.deflateRawSync(Buffer.from(text), { level: 9 });
  index.push(`${name} ${size} ${blob.length}`);
  blobs.push(blob);
  size += blob.length;
};

for (const [section, read] of Object.entries(sections)) {
  const tables = new Map();
  const keys = new Set();
  const before = size;
  for (const l of locales) {
    const to = {};
    read(l, to);
    tables.set(l, to);
    for (const k in to) keys.add(k);
  }
  const list = [...keys].sort();
  put(section + " keys", list.join("\n"));
  for (const l of locales) {
    const own = tables.get(l);
    let parent = tables.get(l === "und" ? "" : parentOf(l)) ?? {};
    let lines = list.map((k) => {
      if (own[k] === undefined) return parent[k] === undefined ? "" : "\u0001";
      return own[k] === parent[k] ? "" : own[k] === "" ? "\u0001" : own[k];
    });
    while (lines.length && lines.at(-1) === "") lines.pop();
    if (lines.length) put(`${section} ${l}`, lines.join("\n"));
  }
  console.log(section, list.length, "keys", size - before, "bytes");
}

// The supplemental tables: lines of a key, a tab and a value.
const table = (name, rows) => put("table " + name, rows.map(([k, v]) => k + "\t" + v).join("\n"));
const ls = new Set(locales);
const tags = locales.filter((l) => l !== "und").concat(json("cldr-core/defaultContent.json").defaultContent.filter((l) => levelOf(l) === "modern"));
for (const t of [...tags]) if (/^[a-z]+-[A-Z][a-z]+-[A-Z]+$/.test(t)) tags.push(t.replace(/-[A-Z][a-z]+/, ""));
put("table locales", [...new Set(tags)].sort().join("\n"));
table("parents", Object.entries(parents).filter(([k]) => ls.has(k)).map(([k, v]) => [k, v === "root" ? "und" : v]));
table("likely", Object.entries(supplemental("likelySubtags").likelySubtags).map(([k, v]) => [k, v]));
table("hours", Object.entries(supplemental("timeData").timeData).map(([k, v]) => [k.replace("_", "-"), v._preferred + " " + v._allowed]));

const zones = [];
const walk = (prefix, node) => {
  for (const k in node) {
    const id = prefix ? prefix + "/" + k : k;
    if (Array.isArray(node[k])) zones.push([id, node[k].map(({ usesMetazone: m }) => [m._mzone, m._from ?? "", m._to ?? ""].join(",")).join(";")]);
    else walk(id, node[k]);
  }
};
const meta = supplemental("metaZones").metaZones;
walk("", meta.metazoneInfo.timezone);
table("metazones", zones);
table("metazoneMap", meta.metazones.map(({ mapZone: m }) => [m._other + " " + m._territory, m._type]));
table("primaryZones", Object.entries(supplemental("primaryZones").primaryZones));
const tz = json("cldr-bcp47/bcp47/timezone.json").keyword.u.tz;
table("zones", Object.entries(tz).filter(([k, v]) => !k.startsWith("_") && v._alias && !v._deprecated).map(([k, v]) => [k, v._alias + (v._iana ? " =" + v._iana : "")]));

table("periods", Object.entries(supplemental("dayPeriods").dayPeriodRuleSet).map(([k, v]) =>
  [k, Object.entries(v).map(([n, r]) => n + "=" + (r._at ?? r._from + "-" + r._before)).join(" ")]));
table("digits", Object.entries(supplemental("numberingSystems").numberingSystems).filter(([, v]) => v._type === "numeric").map(([k, v]) => [k, v._digits]));
const rules = (kind, of) => table(kind, Object.entries(of).map(([k, v]) =>
  [k, Object.entries(v).map(([n, r]) => n.replace("pluralRule-count-", "") + ":" + r.replace(/@.*/, "").trim()).filter((r) => !r.startsWith("other")).join(";")]));
rules("plurals", supplemental("plurals")["plurals-type-cardinal"]);
rules("ordinals", supplemental("ordinals")["plurals-type-ordinal"]);
const ranges = supplemental("pluralRanges").plurals;
table("pluralRanges", Object.entries(ranges).map(([k, v]) => [k, Object.entries(v).map(([n, r]) => n.replace("pluralRange-start-", "").replace("-end-", "+") + "=" + r).join(" ")]));
const cd = supplemental("currencyData").currencyData ?? supplemental("currencyData");
table("fractions", Object.entries(cd.fractions).map(([k, v]) => [k, v._digits]));
const week = supplemental("weekData").weekData;
for (const k of ["minDays", "firstDay", "weekendStart", "weekendEnd"]) table("week " + k, Object.entries(week[k]).filter(([t]) => !t.includes("-alt")));
table("calendars", Object.entries(supplemental("calendarPreferenceData").calendarPreferenceData).map(([k, v]) => [k, [].concat(v).join(" ")]));
const alias = supplemental("aliases").metadata.alias;
for (const [kind, name] of [["languageAlias", "languages"], ["territoryAlias", "territories"], ["scriptAlias", "scripts"], ["variantAlias", "variants"]]) {
  table("alias " + name, Object.entries(alias[kind] ?? {}).map(([k, v]) => [k, v._replacement]));
}

fs.writeFileSync(out, Buffer.concat([Buffer.from(index.join("\n") + "\n\n"), ...blobs]));
console.log(locales.length, "locales", fs.statSync(out).size, "bytes");
