import OpenAI from "openai";

export default async function () {
	const calls = [];
	const fetch = async (url, init) => {
		const headers = new Headers(init.headers);
		const body = init.body ? JSON.parse(init.body) : null;
		calls.push([init.method, String(url), headers.get("authorization"), headers.get("content-type"), body]);
		if (body?.stream) {
			const chunks = ["Hel", "lo", "!"].map((content, i) => `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: i === 2 ? "stop" : null }] })}\n\n`);
			const bytes = new TextEncoder().encode(chunks.join("") + "data: [DONE]\n\n");
			return new Response(new ReadableStream({
				start(controller) {
					for (let i = 0; i < bytes.length; i += 50) controller.enqueue(bytes.slice(i, i + 50));
					controller.close();
				},
			}), { headers: { "content-type": "text/event-stream" } });
		}
		if (String(url).endsWith("/embeddings")) return Response.json({ data: [{ embedding: "AACAPwAAAEA=" }] });
		if (body?.model === "none") return Response.json({ error: { message: "no such model", code: "model_not_found" } }, { status: 404 });
		return Response.json({ id: "1", choices: [{ index: 0, message: { role: "assistant", content: "hi" } }], usage: { total_tokens: 3 } });
	};
	const client = new OpenAI({ apiKey: "sk-test", fetch, maxRetries: 0 });
	const messages = [{ role: "user", content: "hello" }];
	const done = await client.chat.completions.create({ model: "gpt-test", messages });
	const parts = [];
	for await (const part of await client.chat.completions.create({ model: "gpt-test", messages, stream: true })) parts.push(part.choices[0].delta.content);
	const final = await client.chat.completions.stream({ model: "gpt-test", messages }).finalContent();
	const failed = await client.chat.completions.create({ model: "none", messages }).catch((err) => [err.constructor.name, err instanceof OpenAI.NotFoundError, err.status, err.code, err.message]);
	const embedding = await client.embeddings.create({ model: "e", input: "x" });
	return { content: done.choices[0].message.content, parts, final, failed, embedding: embedding.data[0].embedding, calls };
}
