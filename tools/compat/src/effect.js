import { Array as Arr, Data, Duration, Effect, Layer, Option, Schedule, Schema, Stream, pipe } from "effect";

class NotFound extends Data.TaggedError("NotFound") {}

const User = Schema.Struct({ name: Schema.NonEmptyString, age: Schema.NumberFromString, tags: Schema.Array(Schema.String) });

export default async function () {
	let attempts = 0;
	const flaky = Effect.suspend(() => (++attempts < 3 ? Effect.fail(new NotFound({ id: attempts })) : Effect.succeed("ok")));
	const program = Effect.gen(function* () {
		const retried = yield* Effect.retry(flaky, Schedule.recurs(5));
		const all = yield* Effect.forEach([3, 1, 2], (n) => Effect.sleep(Duration.millis(n)).pipe(Effect.as(n * 2)), { concurrency: "unbounded" });
		const caught = yield* Effect.fail(new NotFound({ id: 7 })).pipe(Effect.catchTag("NotFound", (e) => Effect.succeed("caught " + e.id)));
		const streamed = yield* Stream.make(1, 2, 3, 4).pipe(Stream.filter((n) => n % 2 === 0), Stream.map((n) => n * 10), Stream.runCollect);
		return { retried, all, caught, streamed: Array.from(streamed) };
	});
	const result = await Effect.runPromise(program);
	const decoded = Schema.decodeUnknownSync(User)({ name: "Ada", age: "36", tags: ["x"] });
	const failed = await Effect.runPromise(Effect.fail(new NotFound({ id: 1 }))).catch((err) => err._tag ?? err.message);
	return {
		...result,
		decoded,
		failed,
		encoded: Schema.encodeSync(User)(decoded),
		grouped: pipe([1, 2, 3], Arr.groupBy((n) => (n % 2 ? "odd" : "even"))),
		option: Option.getOrElse(Option.none(), () => "none"),
		layer: typeof Layer.empty,
	};
}
