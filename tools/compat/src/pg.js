import pg from "pg";

// The connection is refused, by the sandbox or by a port where no server listens.
export default async function () {
	const client = new pg.Client({ host: "127.0.0.1", port: 1, user: "u", password: "p", database: "d", connectionTimeoutMillis: 2000 });
	client.on("error", () => {});
	const refused = await client.connect().then(() => null, (err) => err);
	console.log("pg: " + refused?.message);
	const query = new pg.Query({ text: "SELECT $1::int AS n", values: [1], rowMode: "array" });
	return {
		refused: refused instanceof Error && refused.message.length > 10,
		identifier: client.escapeIdentifier('a"b'),
		literal: client.escapeLiteral("it's \\ here"),
		types: [pg.types.getTypeParser(1184)("2026-01-02 03:04:05.678+00").toISOString(), pg.types.getTypeParser(1007)("{1,2,NULL}"), pg.types.getTypeParser(17)("\\x68656c6c6f").toString("utf8"), pg.types.getTypeParser(3802)('{"a":1}')],
		query: [query.text, query.values],
	};
}
