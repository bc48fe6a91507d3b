import type { Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome, Source } from "../src/index.js";

/** A source in memory that hands out jobs once and records how they are settled. */
export class FakeSource implements Source {
  readonly acks: Ack[][] = [];
  readonly fails: Fail[][] = [];
  readonly beats: Heartbeat[] = [];
  readonly requests: FetchRequest[] = [];
  closed = false;
  /** Replaces the outcome of a call; throws to let the call fail. */
  answer: (verb: "fetch" | "ack" | "fail" | "heartbeat", id: string) => Partial<Outcome> = () => ({});
  #waiting: FetchedJob[] = [];
  #wake: (() => void) | undefined;

  add(...payloads: unknown[]): void {
    for (const payload of payloads) {
      this.offer({ id: String(payload), payload });
    }
  }

  offer(job: Partial<FetchedJob> & { id: string }): void {
    this.#waiting.push({ namespace: "default", queue: "q", payload: null, attempt: 1, maxAttempts: 4, leaseEpoch: 1, leaseExpiresMs: 0, tags: {}, createdAtMs: 0, ...job });
    this.#wake?.();
  }

  async fetch(request: FetchRequest, signal: AbortSignal): Promise<FetchedJob[]> {
    this.requests.push(request);
    this.answer("fetch", "");
    if (this.#waiting.length === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve());
      });
    }
    return this.#waiting.splice(0, request.count);
  }

  async ack(acks: readonly Ack[]): Promise<Outcome[]> {
    const outcomes = this.#outcomes("ack", acks);
    this.acks.push([...acks]);
    return outcomes;
  }

  async fail(fails: readonly Fail[]): Promise<Outcome[]> {
    const outcomes = this.#outcomes("fail", fails);
    this.fails.push([...fails]);
    return outcomes;
  }

  async heartbeat(_: string, beats: readonly Heartbeat[]): Promise<Outcome[]> {
    const outcomes = this.#outcomes("heartbeat", beats);
    this.beats.push(...beats);
    return outcomes;
  }

  close(): void {
    this.closed = true;
  }

  #outcomes(verb: "ack" | "fail" | "heartbeat", items: readonly { id: string }[]): Outcome[] {
    return items.map(({ id }) => ({ id, ok: true, code: "", message: "", state: "", ...this.answer(verb, id) }));
  }
}
