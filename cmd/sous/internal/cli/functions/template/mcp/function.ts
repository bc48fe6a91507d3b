import { z } from "zod";
import { type Tool, answer } from "./mcp";

// The tools that the server offers. The name and the description tell the model when to use one.
const tools: Record<string, Tool> = {
  remember: {
    description: "Stores a fact under a name",
    input: z.object({ name: z.string().min(1).max(100), fact: z.string() }),
    async run({ name, fact }) {
      await cs.kv.set("fact:" + name, fact);
      return `stored ${name}`;
    },
  },
  recall: {
    description: "Returns the fact that was stored under a name",
    input: z.object({ name: z.string() }),
    async run({ name }) {
      return (await cs.kv.get<string>("fact:" + name)) ?? `there is no fact ${name}`;
    },
  },
};

export default async function handle(event: Partial<HttpEvent> | null, ctx: Context): Promise<HttpResponse> {
  if ((event?.requestContext?.http.method ?? "POST") !== "POST") return { statusCode: 405, headers: { allow: "POST" } };
  const reply = await answer(ctx.function, tools, event?.body ?? "");
  if (reply === undefined) return { statusCode: 202 };
  return { statusCode: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(reply) };
}
