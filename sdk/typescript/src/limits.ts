// The limits of the server, as in docs/limits.md.

export const maxSettleJobs = 1000;
export const maxFetchJobs = 1000;
export const maxFetchQueues = 64;
export const maxFetchWaitMs = 60_000;
export const minLeaseMs = 1_000;
export const maxLeaseMs = 12 * 60 * 60 * 1000;
export const maxDelayMs = 30 * 24 * 60 * 60 * 1000;
export const maxResultBytes = 1 << 20;
export const maxCheckpointBytes = 256 << 10;
export const maxProgressMessage = 1024;
export const maxErrorBytes = 64 << 10;
export const maxStackBytes = 8 << 10;
export const maxRetryAfterMs = 600_000;

/** Returns the JSON of a value. It throws if the value has no JSON, or more than `limit` bytes of it. */
export function encode(what: string, value: unknown, limit: number): string {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) {
    throw new TypeError(`${what}: a ${typeof value} has no JSON`);
  }
  const size = Buffer.byteLength(text);
  if (size > limit) {
    throw new RangeError(`${what}: got ${size} bytes of JSON, want at most ${limit}`);
  }
  return text;
}

/** Returns the text in valid UTF-8, and at most `limit` bytes of it. */
export function truncate(text: string, limit: number): string {
  const bytes = Buffer.from(text);
  let end = Math.min(bytes.length, limit);
  while (end < bytes.length && end > 0 && (bytes[end]! & 0xc0) === 0x80) {
    end--; // within a character
  }
  return bytes.subarray(0, end).toString();
}

/** Returns a delay that the server accepts. */
export function delay(ms: number): number {
  return Math.min(Math.max(0, Math.round(ms) || 0), maxDelayMs);
}

/** Returns the items in parts of at most `maxSettleJobs` items and about `most` bytes. An item that exceeds the bound has a part of its own. */
export function* partsOf<T>(items: readonly T[], most: number, size: (item: T) => number): Generator<T[]> {
  const overhead = 300; // bytes of an item without its variable fields
  let part: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const more = overhead + size(item);
    if (part.length > 0 && (part.length === maxSettleJobs || bytes + more > most)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(item);
    bytes += more;
  }
  if (part.length > 0) {
    yield part;
  }
}
