import { createClient, type Client, type Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";

import { Connection, toError, type Frame } from "./connection.js";
import { WorkerService, type Job, type LifecycleResponse, type Settled } from "./gen/worker_pb.js";
import { partsOf } from "./limits.js";
import type { Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome, Source } from "./source.js";
import { Backoff, bounded } from "./wait.js";

/** Bounds the opening of a stream, in milliseconds. */
const openMs = 10_000;
/** A stream that could not be opened is tried again after a random time up to a bound, which grows from the first to the second, in milliseconds. */
const firstPauseMs = 1_000;
const mostPauseMs = 60_000;
const leastPauseMs = 100;
/** How long a stream must last to be replaced soon, in milliseconds. */
const steadyMs = 30_000;
/** How long a stream may be silent before the server is asked whether it is there, in milliseconds. */
const pingMs = 15_000;
/** Bounds the variable fields of a frame in bytes, below the bound of the server. */
const maxFrameBytes = 7 << 20;
/** Bounds a response in bytes, of which the server splits larger ones. */
const maxResponseBytes = 16 << 20;

export interface StreamOptions {
  url: string;
  key: string;
  tenant: string;
  namespace: string;
  /** Serves calls while there is no stream. */
  fallback: Source;
  connected(): void;
  warning(error: Error): void;
}

/** A source over one stream. Where it cannot be opened, calls use the fallback, and the stream is tried again later. */
export class StreamSource implements Source {
  readonly #client: Client<typeof WorkerService>;
  readonly #session: Http2SessionManager;
  readonly #backoff = new Backoff(firstPauseMs, mostPauseMs, leastPauseMs);
  #hello: NonNullable<Frame["hello"]> | undefined; // of the worker, from its first fetch on
  #connection: Connection | undefined;
  #opening = false;
  #closed = false;
  #retryAt = 0;

  constructor(private readonly options: StreamOptions) {
    this.#session = new Http2SessionManager(options.url, { pingIntervalMs: pingMs, pingTimeoutMs: pingMs, pingIdleConnection: true });
    const transport: Transport = createConnectTransport({
      baseUrl: options.url,
      httpVersion: "2",
      useBinaryFormat: true,
      readMaxBytes: maxResponseBytes,
      sessionManager: this.#session,
    });
    this.#client = createClient(WorkerService, transport);
  }

  async fetch(request: FetchRequest, signal: AbortSignal): Promise<FetchedJob[]> {
    this.#hello ??= { tenant: this.options.tenant, namespace: this.options.namespace, workerId: request.workerId, hostname: request.hostname, version: request.version };
    const connection = await this.#stream(signal);
    if (connection === undefined) {
      return this.options.fallback.fetch({ ...request, waitMs: this.#untilRetry(request.waitMs) }, signal);
    }
    const { queues, count, leaseMs, waitMs } = request;
    const jobs = await connection.fetch({ queues: [...queues], credits: count, leaseMs: BigInt(leaseMs), waitMs: BigInt(waitMs), once: true }, signal);
    return jobs.map((job) => this.#toJob(job));
  }

  async ack(acks: readonly Ack[], signal: AbortSignal): Promise<Outcome[]> {
    const size = (a: Ack) => 3 * ((a.result?.length ?? 0) + (a.checkpoint?.length ?? 0) + (a.hold?.length ?? 0));
    return this.#settle(acks, size, (part) => ({ acks: part.map(fromAck) }), (r) => r.acked, () => this.options.fallback.ack(acks, signal), signal);
  }

  async fail(fails: readonly Fail[], signal: AbortSignal): Promise<Outcome[]> {
    const size = (f: Fail) => 3 * (f.error.length + (f.stack?.length ?? 0));
    return this.#settle(fails, size, (part) => ({ fails: part.map(fromFail) }), (r) => r.failed, () => this.options.fallback.fail(fails, signal), signal);
  }

  async heartbeat(workerId: string, beats: readonly Heartbeat[], signal: AbortSignal): Promise<Outcome[]> {
    const size = (b: Heartbeat) => 3 * ((b.checkpoint?.length ?? 0) + (b.progress?.message?.length ?? 0));
    return this.#settle(beats, size, (part) => ({ heartbeats: part.map(fromHeartbeat) }), (r) => r.extended, () => this.options.fallback.heartbeat(workerId, beats, signal), signal);
  }

  /** Ends the stream. Calls in progress fail; later ones use the fallback. */
  close(): void {
    this.#closed = true;
    this.#connection?.close();
    this.#session.abort();
  }

  /** Sends jobs in frames of bounded size, one after the other, and returns their outcomes. */
  async #settle<T>(
    items: readonly T[],
    size: (item: T) => number,
    frame: (part: T[]) => Frame,
    settled: (response: LifecycleResponse) => Settled | undefined,
    fallback: () => Promise<Outcome[]>,
    signal: AbortSignal,
  ): Promise<Outcome[]> {
    const connection = await this.#stream(signal);
    if (connection === undefined) {
      return fallback();
    }
    const outcomes: Outcome[] = [];
    for (const part of partsOf(items, maxFrameBytes, size)) {
      const answer = settled(await connection.call(frame(part), signal));
      if (answer === undefined) {
        throw new Error("a response lacks the part that its frame asked for");
      }
      if (answer.error !== undefined) {
        throw toError(answer.error);
      }
      outcomes.push(...answer.outcomes.map(({ id, ok, code, message, state }) => ({ id, ok, code, message, state })));
    }
    return outcomes;
  }

  /** Returns the stream, and opens it if it may. It is undefined if there is none now, or another call opens it. */
  async #stream(signal: AbortSignal): Promise<Connection | undefined> {
    if (this.#connection?.usable) {
      return this.#connection;
    }
    if (this.#closed || this.#opening || this.#hello === undefined || performance.now() < this.#retryAt) {
      return undefined;
    }
    this.#opening = true;
    try {
      return await this.#open(signal);
    } catch (error) {
      if (!signal.aborted) {
        this.#postpone();
        this.options.warning(new Error(`a stream could not be opened, so calls use requests for now: ${String(error)}`, { cause: error }));
      }
      return undefined;
    } finally {
      this.#opening = false;
    }
  }

  /** Opens a stream, and returns it once the server has answered its first frame. */
  async #open(signal: AbortSignal): Promise<Connection> {
    const headers: Record<string, string> = this.options.key === "" ? {} : { authorization: `Bearer ${this.options.key}` };
    const connection = new Connection(this.#client, headers);
    try {
      await bounded(openMs, signal, (bound) => connection.call({ hello: this.#hello! }, bound));
      if (this.#closed) {
        throw new Error("the worker has stopped");
      }
    } catch (error) {
      connection.close();
      throw error;
    }
    const opened = performance.now();
    this.#connection = connection;
    this.options.connected();
    void connection.ended.then((reason) => {
      if (performance.now() - opened > steadyMs) {
        this.#backoff.reset();
      }
      this.#postpone();
      if (reason !== undefined && !this.#closed) {
        this.options.warning(new Error(`the stream ended, so calls use requests for now: ${reason.message}`, { cause: reason }));
      }
    });
    return connection;
  }

  /** Returns how long a fetch without a stream waits: at most until a stream may be opened again. */
  #untilRetry(waitMs: number): number {
    return Math.min(waitMs, Math.max(leastPauseMs, Math.ceil(this.#retryAt - performance.now())));
  }

  /** Sets when a stream may be opened again. */
  #postpone(): void {
    this.#retryAt = performance.now() + this.#backoff.next();
  }

  #toJob(j: Job): FetchedJob {
    return {
      id: j.id,
      namespace: this.options.namespace,
      queue: j.queue,
      payload: decode(j.payload),
      attempt: j.attempt,
      maxAttempts: j.maxAttempts,
      leaseEpoch: Number(j.leaseEpoch),
      leaseExpiresMs: Number(j.leaseExpiresMs),
      ...(j.checkpoint.length > 0 ? { checkpoint: decode(j.checkpoint) } : {}),
      tags: j.tags,
      ...(j.parentId === "" ? {} : { parentId: j.parentId }),
      ...(j.callbackOf === "" ? {} : { callbackOf: j.callbackOf }),
      ...(j.provider === "" ? {} : { provider: j.provider }),
      ...(j.model === "" ? {} : { model: j.model }),
      createdAtMs: Number(j.createdAtMs),
    };
  }
}

function decode(json: Uint8Array): unknown {
  return json.length === 0 ? null : JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString());
}

/** Returns the bytes of JSON, none for undefined. */
function bytes(json: string | undefined): Uint8Array<ArrayBuffer> {
  return new Uint8Array(json === undefined ? [] : Buffer.from(json));
}

type Init<Part extends "acks" | "fails" | "heartbeats"> = NonNullable<Frame[Part]>[number];

function fromAck(a: Ack): Init<"acks"> {
  return { id: a.id, leaseEpoch: BigInt(a.leaseEpoch), result: bytes(a.result), continue: a.continue ?? false, hold: wellFormed(a.hold ?? ""), checkpoint: bytes(a.checkpoint) };
}

function fromFail(f: Fail): Init<"fails"> {
  return {
    id: f.id,
    leaseEpoch: BigInt(f.leaseEpoch),
    error: wellFormed(f.error),
    stack: wellFormed(f.stack ?? ""),
    fatal: f.fatal ?? false,
    ...(f.retryAfterMs === undefined ? {} : { retryAfterMs: BigInt(f.retryAfterMs) }),
    ...(f.snoozeMs === undefined ? {} : { snoozeMs: BigInt(f.snoozeMs) }),
    ...(f.providerError === undefined ? {} : { providerError: { ...f.providerError, retryAfterMs: BigInt(f.providerError.retryAfterMs) } }),
  };
}

function fromHeartbeat(b: Heartbeat): Init<"heartbeats"> {
  return {
    id: b.id,
    leaseEpoch: BigInt(b.leaseEpoch),
    leaseMs: BigInt(b.leaseMs),
    checkpoint: bytes(b.checkpoint),
    ...(b.progress === undefined ? {} : { progress: { current: BigInt(b.progress.current), total: BigInt(b.progress.total ?? 0), message: b.progress.message ?? "" } }),
  };
}

/** Returns the text in valid UTF-16, as messages have it. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
