import { check, rejects } from "./check.js";
const messages = [{ role: "user", content: "hello" }];
export default async function () {
  check("members", Object.keys(cs.ai), ["chat", "embed", "stream"]);
  check("chat", await cs.ai.chat({ provider: "main", messages }), { text: "yes", said: { provider: "main", messages } });
  check("the only provider", (await cs.ai.chat({ messages })).said, { messages });
  check("embed", (await cs.ai.embed({ provider: "main", input: ["a"] })).said, { provider: "main", input: ["a"] });
  await rejects("no request", cs.ai.chat(), "the request must be an object");
  await rejects("a list", cs.ai.chat([]), "the request must be an object");
  await rejects("a provider", cs.ai.chat({ provider: 5 }), "the provider must be a string");
  await rejects("an option", cs.ai.chat({ messages }, { timeout: 5 }), 'there is no option "timeout"');
  const e = await rejects("refused", cs.ai.chat({ provider: "limited" }), "slow down");
  check("code", [e.code, e.retryAfterMs], ["CS_RUNTIME_AI_RATE_LIMITED", 1500]);
  check("aborted", await cs.ai.chat({ messages }, { signal: AbortSignal.abort("why") }).catch((e) => e), "why");

  const parts = [];
  for await (const delta of await cs.ai.stream({ provider: "main", messages })) parts.push(delta);
  check("deltas", parts, [
    { type: "text", text: "grüß" }, { type: "tool_call", id: "c1", name: "look", arguments: '{"a"' }, { type: "tool_call", arguments: ":1}" },
    { type: "end", finish_reason: "stop", provider: "main", model: "m", usage: { input_tokens: 1 } },
  ]);
  const whole = await (await cs.ai.stream({ provider: "main", messages })).final();
  check("final", whole, {
    text: "grüß", tool_calls: [{ id: "c1", name: "look", arguments: '{"a":1}' }],
    message: { role: "assistant", content: "grüß", tool_calls: [{ id: "c1", name: "look", arguments: '{"a":1}' }] },
    finish_reason: "stop", provider: "main", model: "m", usage: { input_tokens: 1 },
  });
  const response = (await cs.ai.stream({ provider: "main", messages })).toResponse({ headers: { "x-a": "1" } });
  check("toResponse", [response.status, response.headers.get("content-type"), response.headers.get("cache-control"), response.headers.get("x-a")],
    [200, "text/event-stream", "no-store", "1"]);
  const text = await response.text();
  check("its events", text.split("\n\n").length, 5);
  check("its first event", text.split("\n\n")[0], 'data: {"type":"text","text":"grüß"}');
  const seen = [];
  const failing = await cs.ai.stream({ provider: "failing", messages });
  const cut = await (async () => { for await (const d of failing) seen.push(d.text); })().catch((e) => [e instanceof Error, e.code, e.message]);
  check("an error in the middle", [seen, cut], [["a"], [true, "CS_RUNTIME_AI_UNAVAILABLE", "cut off"]]);
  check("after the error", await failing.next(), { value: undefined, done: true });
  const left = await cs.ai.stream({ provider: "main", messages });
  for await (const d of left) { check("left", d.text, "grüß"); break; }
  check("after return", await left.next(), { value: undefined, done: true });
  const both = await cs.ai.stream({ provider: "main", messages });
  const [one, two] = await Promise.all([both.next(), both.next()]);
  check("two calls of next", [one.value.type, two.value.type], ["text", "tool_call"]);
  await rejects("a stream that is read", (async () => both.toResponse())(), "is being read");
  await rejects("refused stream", cs.ai.stream({ provider: "limited", messages }), "slow down");
}
