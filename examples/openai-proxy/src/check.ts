import type { ChatCompletionCreateParamsStreaming, ChatCompletionMessageParam } from "openai/resources/chat/completions";

const maxMessages = 50;
const maxCharacters = 20_000;
const maxTokens = 1_000;

/**
 * Returns the request for the upstream, or the problem of the caller's one. Callers choose only
 * the messages: the model and the length of an answer determine what it costs.
 */
export function check(body: unknown, env: Record<string, string>): ChatCompletionCreateParamsStreaming | string {
  const messages = (body as { messages?: unknown } | null)?.messages;
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > maxMessages) {
    return `messages must be a list of 1 to ${maxMessages}`;
  }
  if (!messages.every(isMessage)) return "a message must have a role, user or assistant, and a content";
  if (messages.reduce((sum, { content }) => sum + content.length, 0) > maxCharacters) {
    return `the messages have more than ${maxCharacters} characters`;
  }
  return {
    model: env.OPENAI_MODEL ?? "gpt-4o-mini",
    messages: messages.map(({ role, content }): ChatCompletionMessageParam => ({ role, content })),
    max_completion_tokens: maxTokens,
    stream: true,
  };
}

interface Message {
  role: "user" | "assistant";
  content: string;
}

function isMessage(value: any): value is Message {
  return (value?.role === "user" || value?.role === "assistant") && typeof value.content === "string";
}
