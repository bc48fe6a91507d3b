import { Gunzip, decompressSync, gzip, gzipSync, strFromU8, strToU8, unzipSync, zipSync, zlibSync } from "fflate";

export default async function () {
	const text = "hello hello hello é ".repeat(50);
	const zipped = zipSync({ "a.txt": strToU8("a"), dir: { "b.txt": [strToU8(text), { level: 9 }] } }, { mtime: new Date(2026, 0, 2) });
	const files = unzipSync(zipped);
	const parts = [];
	const gunzip = new Gunzip((chunk) => parts.push(strFromU8(chunk, true)));
	const packed = gzipSync(strToU8(text), { mtime: 0 });
	gunzip.push(packed.slice(0, 20));
	gunzip.push(packed.slice(20), true);
	return { files: Object.keys(files), same: strFromU8(files["dir/b.txt"]) === text, packed: packed.length, parts: strFromU8(strToU8(parts.join(""), true)) === text, zlib: strFromU8(decompressSync(zlibSync(strToU8("x")))), zip: zipped.length };
}
