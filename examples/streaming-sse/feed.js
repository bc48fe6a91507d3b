// The feed is a numbered list of events. Each event is a document, and the document "last" has
// the number of the newest one.

const namespace = "feed";
const ttlSeconds = 3600;

/** Returns the number of the newest event, 0 if there is none. */
export async function last() {
  return (await read("last"))?.value ?? 0;
}

/** Adds an event and returns its number. */
export async function publish(text) {
  for (;;) {
    const newest = await read("last");
    const id = (newest?.value ?? 0) + 1;
    try {
      await cs.storage.transact({
        namespace,
        operations: [
          { op: "put", key: "last", value: id, ifRevision: newest?.revision ?? 0 },
          { op: "put", key: `event-${id}`, value: text, ttlSeconds },
        ],
      });
      return id;
    } catch (error) {
      if (error.code !== "REVISION_MISMATCH") throw error; // else another publisher was faster
    }
  }
}

/** Returns the events after the one with that number which have not expired. */
export async function since(id) {
  const newest = await last();
  const events = [];
  for (let next = Math.max(id, newest - 100) + 1; next <= newest; next++) {
    const event = await read(`event-${next}`);
    if (event) events.push({ id: next, text: event.value });
  }
  return events;
}

async function read(key) {
  try {
    return await cs.storage.get({ namespace, key });
  } catch (error) {
    if (error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}
