import * as R from "ramda";

export default async function () {
	const add3 = R.curry((a, b, c) => a + b + c);
	const byScore = R.sortWith([R.descend(R.prop("score")), R.ascend(R.prop("name"))]);
	return {
		curry: add3(1)(2, 3),
		pipe: R.pipe(R.split(" "), R.map(R.toUpper), R.join("-"))("a b c"),
		lens: R.over(R.lensPath(["a", 0, "b"]), R.inc, { a: [{ b: 1 }] }),
		sorted: byScore([{ name: "b", score: 1 }, { name: "a", score: 1 }, { name: "c", score: 2 }]),
		transduce: R.transduce(R.compose(R.map(R.add(1)), R.filter((x) => x % 2 === 0), R.take(2)), R.flip(R.append), [], R.range(1, 10)),
		equals: R.equals(new Map([[1, [2]]]), new Map([[1, [2]]])),
		zip: R.zipObj(["x", "y"], [1, 2]),
		async: await R.andThen(R.inc, Promise.resolve(1)),
	};
}
