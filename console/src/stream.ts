// Server-sent events, read from the body of a fetch: an EventSource cannot send the token of a session.
type Message = { id: string; name: string; data: string };

// messages parses server-sent events.
export async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      yield parse(rest.slice(0, end));
      rest = rest.slice(end + 2);
    }
  }
}

export function parse(block: string): Message {
  const message: Message = { id: "", name: "message", data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("id")) message.id = value;
    else if (line.startsWith("event")) message.name = value;
    else if (line.startsWith("data")) message.data += value;
  }
  return message;
}
