import superjson from "superjson";

class Point {
	constructor(x, y) {
		Object.assign(this, { x, y });
	}
}
superjson.registerClass(Point);

export default async function () {
	const value = { d: new Date(0), m: new Map([["a", new Set([1])]]), n: 12345678901234567890n, u: undefined, r: /a+/gi, e: new Error("x"), nan: NaN, zero: -0, p: new Point(1, 2), url: new URL("https://a.b/c"), bytes: new Uint8Array([1, 2]) };
	const text = superjson.stringify(value);
	const back = superjson.parse(text);
	return {
		json: superjson.serialize({ ...value, e: 1 }),
		back: [back.d.getTime(), back.m.get("a").has(1), back.n === value.n, "u" in back, back.r.flags, back.e.message, Number.isNaN(back.nan), Object.is(back.zero, -0), back.p instanceof Point, back.url.host, back.bytes.length],
	};
}
