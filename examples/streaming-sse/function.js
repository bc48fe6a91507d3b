import { last, publish, since } from "./feed.js";
import { setTimeout as sleep } from "node:timers/promises";

const settings = {
  pollMs: Number(cs.env.POLL_MS ?? 500),
  heartbeatMs: Number(cs.env.HEARTBEAT_MS ?? 10_000),
  // The stream ends before the time limit of the version, and the browser connects again.
  reserveMs: 2_000,
};

export default {
  async fetch(request, env, ctx) {
    switch (request.method) {
      case "GET":
        return subscribe(request, ctx);
      case "POST":
        return Response.json({ id: await publish(await request.text()) }, { status: 201 });
      default:
        return new Response(null, { status: 405, headers: { allow: "GET, POST" } });
    }
  },
};

async function subscribe(request, ctx) {
  const seen = request.headers.get("last-event-id");
  if (seen !== null && !/^\d{1,15}$/.test(seen)) {
    return Response.json({ error: "Last-Event-ID is not an id of this feed" }, { status: 400 });
  }
  const from = seen === null ? await last() : Number(seen);
  const body = ReadableStream.from(messages(from, request.signal, ctx)).pipeThrough(new TextEncoderStream());
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
  });
}

// messages yields the events after id as they are published, and a comment when there was none
// for a while: it keeps proxies from closing the connection.
async function* messages(id, signal, ctx) {
  yield "retry: 1000\n\n"; // milliseconds until the browser connects again
  let quietSince = Date.now();
  try {
    while (!signal.aborted && ctx.remainingMs() > settings.reserveMs) {
      for (const event of await since(id)) {
        id = event.id;
        yield message(event);
        quietSince = Date.now();
      }
      if (Date.now() - quietSince >= settings.heartbeatMs) {
        yield ": heartbeat\n\n";
        quietSince = Date.now();
      }
      await sleep(settings.pollMs, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    if (signal.aborted) console.info("the client left after event", id);
  }
}

// message writes an event in the format of the HTML standard: each line is a field data.
function message({ id, text }) {
  const data = text.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `id: ${id}\n${data.join("")}\n`;
}
