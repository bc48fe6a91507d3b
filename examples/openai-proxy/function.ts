import OpenAI from "openai";
import type { ChatCompletionChunk, ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import { check } from "./src/check";

export default {
  async fetch(request: Request, env: Record<string, string>): Promise<Response> {
    if (request.method !== "POST" || new URL(request.url).pathname !== "/chat/completions") {
      return failure(404, "send a POST to /chat/completions");
    }
    const asked = check(await request.json().catch(() => null), env);
    if (typeof asked === "string") return failure(400, asked);
    const client = new OpenAI({
      apiKey: await cs.secrets.get("OPENAI_API_KEY"),
      baseURL: env.OPENAI_BASE_URL, // undefined: the public API
      maxRetries: 1, // of 429 and 5xx, after the time that Retry-After names
      timeout: 20_000,
    });
    return complete(client, asked, request.signal);
  },
};

async function complete(client: OpenAI, asked: ChatCompletionCreateParamsStreaming, signal: AbortSignal): Promise<Response> {
  try {
    // If the client leaves, the request to the upstream ends too.
    const chunks = await client.chat.completions.create(asked, { signal });
    const body = ReadableStream.from(events(chunks)).pipeThrough(new TextEncoderStream());
    return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    console.warn("the upstream failed:", error.message);
    if (error.status !== 429) return failure(502, "the upstream failed");
    return failure(429, "too many requests", { "retry-after": error.headers?.get("retry-after") ?? "10" });
  }
}

/** Yields the events of the answer, in the format of the API, so that its clients can read them. */
async function* events(chunks: AsyncIterable<ChatCompletionChunk>): AsyncGenerator<string> {
  let finished = false;
  for await (const chunk of chunks) {
    finished ||= chunk.choices.some((choice) => choice.finish_reason !== null);
    yield `data: ${JSON.stringify(chunk)}\n\n`;
  }
  // The error cuts the connection, so that no client takes half of an answer for all of it.
  if (!finished) throw new Error("the upstream ended its answer too early");
  yield "data: [DONE]\n\n";
}

function failure(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: { message } }, { status, headers });
}
