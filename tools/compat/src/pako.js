import * as pako from "pako";

export default async function () {
	const text = "hello hello hello é ".repeat(50);
	const deflated = pako.deflate(text);
	const known = Uint8Array.from(atob("H4sIAAAAAAAAA8tIzcnJVyjPL8pJAQCFEUoNCwAAAA=="), (c) => c.charCodeAt(0));
	let error;
	try {
		pako.inflate(new Uint8Array([1, 2, 3]));
	} catch (err) {
		error = String(err.message ?? err);
	}
	return { size: deflated.length, head: Array.from(deflated.slice(0, 8)), same: new TextDecoder().decode(pako.inflate(deflated)) === text, raw: new TextDecoder().decode(pako.inflateRaw(pako.deflateRaw(text, { level: 1 }))) === text, gunzipped: new TextDecoder().decode(pako.ungzip(known)), error };
}
