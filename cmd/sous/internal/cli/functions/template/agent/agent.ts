import { z } from "zod";

// The loop of an agent over a chat API of the form that OpenAI introduced: the model answers,
// or calls tools and gets their results.

export interface Tool {
  description: string;
  input: z.ZodObject;
  run(input: any): Promise<string>;
}

export interface Conversation {
  url: string;
  model: string;
  key: string;
  system: string;
  question: string;
  tools: Record<string, Tool>;
  timeLeft(): number;
}

const Reply = z.object({
  choices: z.array(z.object({
    message: z.object({
      content: z.string().nullish(),
      tool_calls: z.array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })).nullish(),
    }).loose(),
  })).min(1),
});

const maxRounds = 10;

export async function converse(c: Conversation): Promise<{ answer: string; rounds: number }> {
  const messages: object[] = [{ role: "system", content: c.system }, { role: "user", content: c.question }];
  for (let rounds = 1; rounds <= maxRounds; rounds++) {
    const message = await ask(c, messages);
    if (!message.tool_calls?.length) return { answer: message.content ?? "", rounds };
    messages.push({ role: "assistant", ...message });
    for (const call of message.tool_calls) {
      const result = await use(c.tools, call.function.name, call.function.arguments);
      cs.log.info({ tool: call.function.name, result });
      messages.push({ role: "tool", tool_call_id: call.id, content: result });
    }
  }
  throw new Error(`the model gave no answer in ${maxRounds} rounds`);
}

async function ask(c: Conversation, messages: object[]) {
  const tools = Object.entries(c.tools).map(([name, t]) => ({
    type: "function",
    function: { name, description: t.description, parameters: z.toJSONSchema(t.input, { io: "input" }) },
  }));
  const response = await fetch(c.url + "/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer " + c.key },
    body: JSON.stringify({ model: c.model, messages, tools }),
    signal: AbortSignal.timeout(Math.max(c.timeLeft() - 1000, 1)),
  });
  if (!response.ok) throw new Error(`the model's API answered ${response.status}: ${(await response.text()).slice(0, 500)}`);
  return Reply.parse(await response.json()).choices[0]!.message;
}

// use runs a tool. Its errors are for the model, which may correct its call.
async function use(tools: Record<string, Tool>, name: string, text: string): Promise<string> {
  const tool = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (!tool) return `there is no tool ${name}`;
  try {
    return await tool.run(tool.input.parse(JSON.parse(text || "{}")));
  } catch (e) {
    return String(e);
  }
}
