import { z } from "zod";
import { type Tool, converse } from "./agent";

// The tools that the model may call.
const tools: Record<string, Tool> = {
  now: {
    description: "Returns the current date and time in UTC",
    input: z.object({}),
    run: async () => new Date().toISOString(),
  },
  note: {
    description: "Stores a note for later questions, or returns it if the text is left out",
    input: z.object({ name: z.string(), text: z.string().optional() }),
    async run({ name, text }) {
      if (text === undefined) return (await cs.kv.get<string>("note:" + name)) ?? "there is no such note";
      await cs.kv.set("note:" + name, text);
      return "stored";
    },
  },
};

export default async function handle(event: { question?: string } | null, ctx: Context) {
  if (!event?.question) throw new Error('the event needs a question: {"question": "…"}');
  return converse({
    url: cs.env.LLM_URL ?? "https://api.openai.com/v1",
    model: cs.env.LLM_MODEL ?? "gpt-5-mini",
    key: await cs.secrets.get("LLM_KEY"),
    system: "Answer briefly. Use the tools where they help.",
    question: event.question,
    tools,
    timeLeft: () => ctx.remainingMs(),
  });
}
