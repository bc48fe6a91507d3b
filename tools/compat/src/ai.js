import { embed, generateText, simulateReadableStream, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 2, text: 2, reasoning: 0 } };
const reason = (unified) => ({ unified, raw: unified });

const model = () => {
	let step = 0;
	return {
		specificationVersion: "v3",
		provider: "test",
		modelId: "test",
		supportedUrls: {},
		doGenerate: async () =>
			step++ === 0
				? { content: [{ type: "tool-call", toolCallId: "1", toolName: "weather", input: '{"city":"Oslo"}' }], finishReason: reason("tool-calls"), usage, warnings: [] }
				: { content: [{ type: "text", text: "It is cold." }], finishReason: reason("stop"), usage, warnings: [] },
		doStream: async () => ({
			stream: simulateReadableStream({
				chunkDelayInMs: 1,
				initialDelayInMs: 0,
				chunks: [
					{ type: "stream-start", warnings: [] },
					{ type: "text-start", id: "t" },
					...["Hel", "lo"].map((delta) => ({ type: "text-delta", id: "t", delta })),
					{ type: "text-end", id: "t" },
					{ type: "finish", finishReason: reason("stop"), usage },
				],
			}),
		}),
	};
};

export default async function () {
	const tools = { weather: tool({ description: "weather", inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => ({ city, degrees: -3 }) }) };
	const result = await generateText({ model: model(), prompt: "weather?", tools, stopWhen: stepCountIs(3) });
	const parts = [];
	const stream = streamText({ model: model(), prompt: "hi" });
	for await (const part of stream.textStream) parts.push(part);
	const response = streamText({ model: model(), prompt: "hi" }).toTextStreamResponse();
	const embedding = await embed({ model: { specificationVersion: "v3", provider: "test", modelId: "e", maxEmbeddingsPerCall: 1, supportsParallelCalls: false, doEmbed: async ({ values }) => ({ embeddings: values.map((v) => [v.length, 1]), warnings: [] }) }, value: "four" });
	return {
		text: result.text,
		steps: result.steps.map((s) => s.toolResults.map((r) => r.output)),
		parts,
		response: await response.text(),
		embedding: embedding.embedding,
		finish: await stream.finishReason,
	};
}
