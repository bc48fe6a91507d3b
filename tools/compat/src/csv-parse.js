import { parse } from "csv-parse";
import { parse as parseSync } from "csv-parse/sync";

export default async function () {
	const text = 'id,name,when\n1,"Ada ""A"" L",2026-01-02\n# comment\n2,Grace,\n';
	const records = await new Promise((resolve, reject) => {
		parse(text, { columns: true, comment: "#" }, (err, out) => (err ? reject(err) : resolve(out)));
	});
	const streamed = [];
	const parser = parse({ delimiter: ";" });
	parser.on("readable", () => {
		for (let r = parser.read(); r !== null; r = parser.read()) streamed.push(r);
	});
	await new Promise((resolve, reject) => {
		parser.on("end", resolve).on("error", reject);
		parser.write("a;b\n1");
		parser.write(";2\n");
		parser.end();
	});
	let error;
	try {
		parseSync("a,b\n1\n");
	} catch (err) {
		error = [err.code, err.message];
	}
	return { records, streamed, sync: parseSync(text, { columns: true, comment: "#", cast: true }), error };
}
