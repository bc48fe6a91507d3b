import Decimal from "decimal.js";

export default async function () {
	const D = Decimal.clone({ precision: 40 });
	return {
		sum: new Decimal("0.1").plus("0.2").toString(),
		third: new D(1).div(3).toString(),
		sqrt: new D(2).sqrt().toString(),
		exp: new D(1).exp().toFixed(30),
		pow: new D("1.1").pow(100).toSD(20).toString(),
		pi: D.acos(-1).toString(),
		round: new Decimal("2.345").toFixed(2, Decimal.ROUND_HALF_EVEN),
		hex: new Decimal("255.5").toHexadecimal(),
		max: Decimal.max(1, "3", new Decimal(2)).toNumber(),
		fraction: new Decimal("0.375").toFraction().map(String),
	};
}
