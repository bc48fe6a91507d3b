// Calls modules of src under Node and prints a line of JSON for each: {name, value} or
// {name, error}. Without arguments all are called.
//
//	node reference.js [NAME...]
import { readdirSync } from "node:fs";

const folder = new URL("./src/", import.meta.url);
const names = process.argv.length > 2 ? process.argv.slice(2) : readdirSync(folder).filter((f) => f.endsWith(".js")).map((f) => f.slice(0, -3));
const write = process.stdout.write.bind(process.stdout);
console.log = console.error; // what modules log does not belong to the output
globalThis.WebSocket ??= class WebSocket {}; // Node.js 22 has one; no module connects

for (const name of names) {
	let line;
	try {
		const module = await import(new URL(name + ".js", folder));
		line = { name, value: await module.default({}, {}) };
	} catch (err) {
		line = { name, error: String(err?.stack ?? err) };
	}
	write(JSON.stringify(line) + "\n");
}
process.exit(0);
