import { chain, create, all, derivative, det, evaluate, format, inv, parse, simplify, sqrt, unit } from "mathjs";

export default async function () {
	const big = create(all, { number: "BigNumber", precision: 32 });
	const scope = { x: 3 };
	return {
		evaluate: [evaluate("1.2 * (2 + 4.5)"), evaluate("12.7 cm to inch").toString(), format(evaluate("sin(45 deg) ^ 2"), { precision: 12 }), evaluate("f(x) = x ^ 2; f(4)").toString(), evaluate("9 / 3 + 2i").toString()],
		matrix: [det([[-1, 2], [3, 1]]), inv([[1, 2], [3, 4]])],
		derivative: derivative("x^2 + sin(x)", "x").toString(),
		simplify: simplify("2x + x + 3 * 1").toString(),
		compiled: parse("x^2 + 1").compile().evaluate(scope),
		unit: unit("5 km").to("mile").toNumber("mile").toFixed(4),
		big: big.evaluate("1 / 3").toString(),
		format: format(0.1 + 0.2, { precision: 14 }),
		chain: chain(3).add(4).multiply(2).done(),
		complex: sqrt(-4).toString(),
	};
}
