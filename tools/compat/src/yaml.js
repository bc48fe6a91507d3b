import YAML from "yaml";

const text = `# config
base: &base
  name: test
  list: [1, 2.5, 0x1f, ~, true]
derived:
  <<: *base
  text: |
    two
    lines
  folded: >-
    one
    line
  date: 2026-01-02
  !!binary bytes: aGVsbG8=
`;

export default async function () {
	const doc = YAML.parseDocument("a: 1 # one\nb:\n  - x\n");
	doc.setIn(["b", 1], { y: "zoë" });
	let error;
	try {
		YAML.parse("a: [1\nb: 2");
	} catch (err) {
		error = [err.name, err.code, err.linePos[0]];
	}
	return {
		parsed: YAML.parse(text.replace("!!binary ", ""), { merge: true }),
		all: YAML.parseAllDocuments("--- 1\n--- two\n").map((d) => d.toJS()),
		edited: String(doc),
		text: YAML.stringify({ a: [1, { b: "multi\nline" }], c: "yes", d: null, "e f": "1" }),
		error,
	};
}
