import Papa from "papaparse";

export default async function () {
	const csv = 'name,age,note\n"Ada, L.",36,"says ""hi"""\nGrace,85,\n\nLin,x,"two\nlines"\n';
	const rows = [];
	Papa.parse(csv, { header: true, step: (r) => rows.push(r.data.name), skipEmptyLines: true });
	const bad = Papa.parse('a,b\n1,"2', {});
	return {
		parsed: Papa.parse(csv, { header: true, dynamicTyping: true, skipEmptyLines: true }).data,
		rows,
		delimiter: Papa.parse("a;b\n1;2").meta.delimiter,
		errors: bad.errors.map((e) => e.code),
		text: Papa.unparse([{ a: 1, b: 'x "y", z' }, { a: null, b: "=1+1" }], { escapeFormulae: true }),
	};
}
