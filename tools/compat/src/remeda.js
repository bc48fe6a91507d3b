import * as R from "remeda";

export default async function () {
	return {
		piped: R.pipe([5, 3, 8, 1, 9], R.filter((x) => x > 2), R.sortBy([R.identity(), "desc"]), R.take(3), R.map((x) => x * 10)),
		grouped: R.groupBy([{ k: "a", v: 1 }, { k: "b", v: 2 }, { k: "a", v: 3 }], R.prop("k")),
		merged: R.mergeDeep({ a: { b: 1 } }, { a: { c: 2 } }),
		equal: R.isDeepEqual({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }),
		cases: [R.toCamelCase("hello there world"), R.toKebabCase("helloThere"), R.capitalize("ada")],
		unique: R.unique([1, 1, 2]),
		chunk: R.chunk([1, 2, 3], 2),
	};
}
