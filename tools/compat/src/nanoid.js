import { customAlphabet, customRandom, nanoid, urlAlphabet } from "nanoid";

export default async function () {
	const fixed = customRandom(urlAlphabet, 10, (size) => new Uint8Array(size).map((_, i) => i * 7));
	const ids = new Set(Array.from({ length: 100 }, () => nanoid()));
	return { length: nanoid().length, distinct: ids.size, hex: /^[0-9a-f]{12}$/.test(customAlphabet("0123456789abcdef", 12)()), fixed: fixed(), alphabet: urlAlphabet.length };
}
