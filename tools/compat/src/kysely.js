import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from "kysely";

class Recorder extends DummyDriver {
	constructor(log) {
		super();
		this.log = log;
	}
	async acquireConnection() {
		return {
			executeQuery: async (q) => {
				this.log.push([q.sql, q.parameters]);
				return { rows: [{ id: 1 }] };
			},
			async *streamQuery() {},
		};
	}
}

export default async function () {
	const log = [];
	const db = new Kysely({
		dialect: { createDriver: () => new Recorder(log), createQueryCompiler: () => new PostgresQueryCompiler(), createAdapter: () => new PostgresAdapter(), createIntrospector: (d) => new PostgresIntrospector(d) },
	});
	const rows = await db.selectFrom("users as u").innerJoin("posts as p", "p.author", "u.id").select(["u.id", (eb) => eb.fn.count("p.id").as("n")]).where((eb) => eb.or([eb("u.name", "=", "a"), eb("u.id", "in", [1, 2])])).groupBy("u.id").orderBy("n", "desc").limit(3).execute();
	await db.insertInto("users").values({ name: "x" }).onConflict((oc) => oc.column("name").doNothing()).returning("id").execute();
	await db.with("old", (d) => d.selectFrom("users").selectAll().where("age", ">", 90)).deleteFrom("users").using("old").whereRef("users.id", "=", "old.id").execute();
	await db.transaction().execute((t) => t.updateTable("users").set({ name: sql`upper(name)` }).execute());
	return { rows, log, schema: db.schema.createTable("t").addColumn("id", "serial", (c) => c.primaryKey()).compile().sql };
}
