import { Hono, type Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { z } from "zod";
import type { Variables } from "./auth";

const namespace = "notes";

const NewNote = z.strictObject({
  title: z.string().trim().min(1).max(100),
  text: z.string().max(10_000).default(""),
  tags: z.array(z.string().regex(/^[a-z0-9-]+$/)).max(5).default([]),
});

type Note = z.infer<typeof NewNote> & { owner: string };

const Page = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(25),
  cursor: z.string().optional(),
});

/** notes are documents. The owner is in the metadata, so that lists show each user only their own. */
export const notes = new Hono<{ Variables: Variables }>();

notes.post("/", async (c) => {
  const parsed = NewNote.safeParse(await body(c));
  if (!parsed.success) return c.json(problem(parsed.error), 422);
  const owner = c.get("user");
  const id = crypto.randomUUID();
  const note: Note = { ...parsed.data, owner };
  // Revision 0: the document must not exist.
  await cs.storage.put({ namespace, key: id, value: note, metadata: { owner }, ifRevision: 0 });
  return c.json(shown(id, note), 201);
});

notes.get("/", async (c) => {
  const parsed = Page.safeParse(c.req.query());
  if (!parsed.success) return c.json(problem(parsed.error), 422);
  const metadata = { owner: c.get("user") };
  const page = await cs.storage.list<Note>({ namespace, ...parsed.data, metadata, includeValues: true });
  return c.json({ notes: page.items.map((item) => shown(item.key, item.value!)), next: page.nextCursor });
});

notes.get("/:id{[0-9a-f-]{36}}", async (c) => {
  const id = c.req.param("id");
  return c.json(shown(id, await own(c, id)));
});

notes.delete("/:id{[0-9a-f-]{36}}", async (c) => {
  const id = c.req.param("id");
  await own(c, id);
  await cs.storage.delete({ namespace, key: id });
  return c.body(null, 204);
});

/** own returns a note of the user. One of another user is missing, so that ids reveal nothing. */
async function own(c: Context<{ Variables: Variables }>, id: string): Promise<Note> {
  const missing = new HTTPException(404, { message: "there is no such note" });
  try {
    const { value } = await cs.storage.get<Note>({ namespace, key: id });
    if (value.owner !== c.get("user")) throw missing;
    return value;
  } catch (error) {
    throw (error as StorageError).code === "NOT_FOUND" ? missing : error;
  }
}

async function body(c: Context): Promise<unknown> {
  try {
    return await c.req.json();
  } catch {
    throw new HTTPException(400, { message: "the body is not JSON" });
  }
}

function shown(id: string, { owner, ...note }: Note) {
  return { id, ...note };
}

function problem(error: z.ZodError) {
  return {
    error: "the request is not valid",
    fields: error.issues.map((issue) => ({ path: issue.path.join("."), message: issue.message })),
  };
}
