import { z } from "zod";

// A JSON API for notes: PUT, GET and DELETE /{id}.

const Note = z.object({
  title: z.string().min(1).max(200),
  text: z.string().max(10_000).default(""),
  tags: z.array(z.string()).max(10).default([]),
});

export default async function handle(event: HttpEvent): Promise<HttpResponse> {
  const id = event.path.split("/")[1];
  if (!id || !/^[\w-]{1,64}$/.test(id)) return json(404, { error: "the path is /{id}" });
  const key = "note:" + id;

  switch (event.requestContext.http.method) {
    case "GET": {
      const note = await cs.kv.get(key);
      return note === undefined ? json(404, { error: `there is no note ${id}` }) : json(200, note);
    }
    case "PUT": {
      const note = Note.safeParse(read(event));
      if (!note.success) {
        return json(400, { errors: note.error.issues.map((i) => ({ path: i.path.join("."), message: i.message })) });
      }
      await cs.kv.set(key, note.data);
      return json(200, note.data);
    }
    case "DELETE":
      await cs.kv.del(key);
      return { statusCode: 204 };
  }
  return json(405, { error: "use GET, PUT or DELETE" });
}

// read returns the body as JSON, undefined if it is none.
function read(event: HttpEvent): unknown {
  if (event.isBase64Encoded) return undefined; // bytes
  try {
    return JSON.parse(event.body ?? "");
  } catch {
    return undefined;
  }
}

function json(statusCode: number, value: unknown): HttpResponse {
  return { statusCode, headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}
