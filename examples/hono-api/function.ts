import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { authenticate, type Variables } from "./src/auth";
import { notes } from "./src/notes";

const app = new Hono<{ Variables: Variables }>();

app.get("/health", (c) => c.json({ status: "ok" }));
app.use("/notes/*", authenticate); // the pattern includes /notes
app.route("/notes", notes);

app.notFound((c) => c.json({ error: "there is no such page" }, 404));

app.onError((error, c) => {
  if (error instanceof HTTPException) {
    return c.json({ error: error.message }, error.status, Object.fromEntries(error.res?.headers ?? []));
  }
  console.error(error);
  return c.json({ error: "the request failed" }, 500);
});

export default app;
