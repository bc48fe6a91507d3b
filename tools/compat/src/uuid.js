import { NIL, parse, stringify, v1, v3, v4, v5, v7, validate, version } from "uuid";

export default async function () {
	const random = Uint8Array.from({ length: 16 }, (_, i) => i);
	return {
		v1: version(v1()),
		v3: v3("hello", v3.URL),
		v4: [v4({ random }), validate(v4()), version(v4()), v4() !== v4()],
		v5: v5("hello", v5.DNS),
		v7: [v7({ msecs: 1760000000000, random, seq: 5 }), version(v7())],
		parsed: Array.from(parse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
		text: stringify(random),
		invalid: validate("x"),
		NIL,
	};
}
