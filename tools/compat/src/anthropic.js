import Anthropic from "@anthropic-ai/sdk";

const event = (type, data) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;

export default async function () {
	const calls = [];
	const fetch = async (url, init) => {
		const headers = new Headers(init.headers);
		const body = JSON.parse(init.body);
		calls.push([init.method, String(url), headers.get("x-api-key") ?? headers.get("authorization"), headers.get("anthropic-version"), body]);
		if (body.model === "busy") return Response.json({ type: "error", error: { type: "overloaded_error", message: "busy" } }, { status: 529 });
		const message = { id: "m", type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 1 } };
		if (!body.stream) return Response.json({ ...message, content: [{ type: "text", text: "hi" }], stop_reason: "end_turn" });
		const text = event("message_start", { message }) + event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
			["Hé", "llo"].map((t) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text: t } })).join("") +
			event("content_block_stop", { index: 0 }) + event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }) + event("message_stop", {});
		return new Response(text, { headers: { "content-type": "text/event-stream" } });
	};
	const client = new Anthropic({ apiKey: "sk-ant-test", fetch, maxRetries: 0 });
	const params = { model: "claude-test", max_tokens: 10, messages: [{ role: "user", content: "hello" }] };
	const done = await client.messages.create(params);
	const types = [];
	for await (const e of await client.messages.create({ ...params, stream: true })) types.push(e.type);
	const stream = client.messages.stream(params);
	const texts = [];
	stream.on("text", (t) => texts.push(t));
	const final = await stream.finalMessage();
	const failed = await client.messages.create({ ...params, model: "busy" }).catch((err) => [err instanceof Anthropic.APIError, err.status]);
	return { done: done.content, types, texts, final: [final.content, final.stop_reason, final.usage.output_tokens], failed, calls };
}
