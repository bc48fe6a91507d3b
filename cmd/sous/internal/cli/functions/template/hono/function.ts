import { Hono } from "hono";

const app = new Hono();

app.get("/", (c) => c.json({ hello: c.req.query("name") ?? "world" }));

app.post("/visits/:page", async (c) => {
  const key = "visits:" + c.req.param("page");
  const visits = ((await cs.kv.get<number>(key)) ?? 0) + 1;
  await cs.kv.set(key, visits);
  return c.json({ visits });
});

app.notFound((c) => c.json({ error: "there is no such page" }, 404));

// The method fetch of an application gets the requests of the function's URL.
export default app;
