// Compiles src/svelte/*.svelte for rendering on a server, beside their sources.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "svelte/compiler";

const folder = new URL("./src/svelte/", import.meta.url);
for (const file of readdirSync(folder).filter((name) => name.endsWith(".svelte"))) {
	const { js } = compile(readFileSync(new URL(file, folder), "utf8"), { filename: file, generate: "server", dev: false });
	writeFileSync(new URL(file.replace(/\.svelte$/, ".js"), folder), js.code.replaceAll(/(from "?'?\.\/\w+)\.svelte/g, "$1.js") + "\n");
}
