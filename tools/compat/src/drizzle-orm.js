import { and, asc, count, desc, eq, gt, inArray, like, relations, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/pg-proxy";
import { integer, pgTable, serial, text, timestamp } from "drizzle-orm/pg-core";

const users = pgTable("users", { id: serial("id").primaryKey(), name: text("name").notNull(), created: timestamp("created", { mode: "string" }) });
const posts = pgTable("posts", { id: serial("id").primaryKey(), author: integer("author").references(() => users.id), title: text("title") });
const usersRelations = relations(users, ({ many }) => ({ posts: many(posts) }));
const postsRelations = relations(posts, ({ one }) => ({ user: one(users, { fields: [posts.author], references: [users.id] }) }));

export default async function () {
	const log = [];
	const db = drizzle(async (text, params, method) => {
		log.push([text, params, method]);
		return { rows: method === "all" ? [[1, "ada"]] : [] };
	}, { schema: { users, posts, usersRelations, postsRelations } });
	const rows = await db.select({ id: users.id, name: users.name }).from(users).where(and(eq(users.name, "ada"), gt(users.id, 0), inArray(users.id, [1, 2]))).orderBy(desc(users.id)).limit(5);
	const joined = db.select({ name: users.name, n: count(posts.id) }).from(users).leftJoin(posts, eq(posts.author, users.id)).where(like(posts.title, "%x%")).groupBy(users.name).toSQL();
	await db.insert(users).values([{ name: "a" }, { name: "b" }]).onConflictDoUpdate({ target: users.id, set: { name: sql`excluded.name` } });
	await db.update(users).set({ name: "z" }).where(eq(users.id, 1));
	await db.delete(posts).where(eq(posts.id, 9));
	const related = db.query.users.findMany({ with: { posts: { columns: { title: true }, orderBy: asc(posts.id) } }, limit: 2 }).toSQL();
	return { rows, joined, related, log };
}
