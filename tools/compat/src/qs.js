import qs from "qs";

export default async function () {
	return {
		parsed: qs.parse("a[b][c]=1&d[]=2&d[]=3&e=%C3%A9+x&f[0]=y&f[2]=z&g", { allowSparse: false }),
		dots: qs.parse("?a.b=c", { allowDots: true, ignoreQueryPrefix: true }),
		text: qs.stringify({ a: { b: [1, 2] }, d: new Date(0), n: null, u: undefined, s: "é &" }),
		brackets: qs.stringify({ a: ["x", "y"] }, { arrayFormat: "brackets", encode: false }),
		sorted: qs.stringify({ b: 1, a: 2 }, { sort: (x, y) => x.localeCompare(y), addQueryPrefix: true }),
		latin: qs.stringify({ a: "ä" }, { charset: "iso-8859-1", charsetSentinel: true }),
		deep: qs.parse("a[b][c][d][e][f][g]=x"),
	};
}
