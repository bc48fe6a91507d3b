import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";

import { ApiError } from "./errors.js";
import { ErrorSchema, LifecycleRequestSchema, type Error as WireError, type Job, type LifecycleRequest, type LifecycleResponse, type WorkerService } from "./gen/worker_pb.js";
import { bounded } from "./wait.js";

/** A frame to send. */
export type Frame = MessageInitShape<typeof LifecycleRequestSchema>;

/** How long a fetch that is cancelled waits for its last jobs, in milliseconds. */
const lastJobsMs = 5_000;

/** The stream broke before the answer: the outcome of the call is unknown. */
export class Broken extends Error {
  override readonly name = "Broken";
}

/** A call whose responses are awaited. */
interface Call {
  /** Takes a response, and reports whether it is the last one. */
  take(response: LifecycleResponse): boolean;
  /** Ends the call, because the stream ended. */
  fail(error: Error): void;
}

/** An open stream. */
export class Connection {
  #last = 0n;
  #draining = false;
  #ended: Error | undefined;
  readonly #calls = new Map<bigint, Call>();
  readonly #frames = new Frames();
  readonly #end = new AbortController();
  /** Resolved with the reason when the stream has ended, and with undefined if the server or this side ended it in order. */
  readonly ended: Promise<Error | undefined>;

  /** Opens a stream. It is usable once a call was answered. */
  constructor(client: Client<typeof WorkerService>, headers: Record<string, string>) {
    const responses = client.lifecycle(this.#frames, { headers, signal: this.#end.signal });
    this.ended = this.#receive(responses);
  }

  /** Whether calls may begin. */
  get usable(): boolean {
    return !this.#draining && this.#ended === undefined;
  }

  /** Ends the stream. Its calls fail. */
  close(reason?: Error): void {
    this.#frames.end();
    this.#end.abort(reason ?? closed);
  }

  /** Sends a frame without a fetch and returns its response. */
  call(frame: Frame, signal: AbortSignal): Promise<LifecycleResponse> {
    return new Promise((resolve, reject) => {
      const id = this.#begin(frame, {
        take: (response) => {
          settle(() => (response.error === undefined ? resolve(response) : reject(toError(response.error))));
          return true;
        },
        fail: (error) => settle(() => reject(error)),
      });
      const cancel = () => {
        settle(() => reject(signal.reason));
        this.#forget(id);
      };
      const settle = (how: () => void) => {
        signal.removeEventListener("abort", cancel);
        how();
      };
      signal.addEventListener("abort", cancel);
      if (signal.aborted) {
        cancel();
      }
    });
  }

  /** Sends a fetch that ends with its first jobs, and returns them. Jobs that arrived before a failure are returned: they are leased. */
  async fetch(fetch: NonNullable<Frame["fetch"]>, signal: AbortSignal): Promise<Job[]> {
    const jobs: Job[] = [];
    let failure: Error | undefined;
    signal.throwIfAborted();
    await new Promise<void>((resolve) => {
      const end = (error?: Error) => {
        failure = error;
        signal.removeEventListener("abort", cancel);
        resolve();
      };
      const id = this.#begin({ fetch }, {
        take: (response) => {
          jobs.push(...(response.fetched?.jobs ?? []));
          const refused = response.error ?? response.fetched?.error;
          const over = refused !== undefined || response.fetched?.done === true;
          if (over) {
            end(refused === undefined ? undefined : toError(refused));
          }
          return over;
        },
        fail: end,
      });
      const cancel = () => {
        bounded(lastJobsMs, undefined, async (bound) => {
          bound.addEventListener("abort", () => end());
          await this.call({ cancelFetches: [id] }, bound);
        }).catch(() => end(signal.reason as Error));
      };
      signal.addEventListener("abort", cancel, { once: true });
    });
    if (failure !== undefined && jobs.length === 0) {
      throw failure;
    }
    return jobs;
  }

  #begin(frame: Frame, call: Call): bigint {
    const id = ++this.#last;
    if (this.#ended !== undefined) {
      call.fail(this.#ended);
      return id;
    }
    this.#calls.set(id, call);
    this.#frames.push(create(LifecycleRequestSchema, { ...frame, requestId: id }));
    return id;
  }

  /** Unregisters a call. The last one of a stream that drains ends it. */
  #forget(id: bigint): void {
    this.#calls.delete(id);
    if (this.#draining && this.#calls.size === 0) {
      this.#frames.end();
    }
  }

  /** Passes responses to their calls until the stream ends. */
  async #receive(responses: AsyncIterable<LifecycleResponse>): Promise<Error | undefined> {
    let reason: Error | undefined;
    try {
      for await (const response of responses) {
        this.#draining ||= response.draining;
        if (this.#calls.get(response.requestId)?.take(response) ?? response.draining) {
          this.#forget(response.requestId);
        }
      }
    } catch (error) {
      reason = reasonOf(error);
    }
    this.#frames.end();
    const inOrder = this.#draining || this.#end.signal.reason === closed;
    this.#ended = reason instanceof ApiError ? reason : new Broken(`the stream broke before the answer${reason === undefined ? "" : `: ${reason.message}`}`, { cause: reason });
    this.#calls.forEach((call) => call.fail(this.#ended!));
    this.#calls.clear();
    return inOrder ? undefined : this.#ended;
  }
}

const closed = new Error("the stream was closed");

/** Returns the error of the API that a stream ended with, or the error. */
function reasonOf(error: unknown): Error {
  const coded = ConnectError.from(error);
  const [detail] = coded.findDetails(ErrorSchema);
  if (detail !== undefined) {
    return toError(detail);
  }
  return coded.code === Code.Canceled && coded.cause instanceof Error ? coded.cause : coded;
}

/** Converts an error of a response. */
export function toError(e: WireError): ApiError {
  return new ApiError(e.code, e.message, 0, Number(e.retryAfterMs), e.fields.map(({ path, message }) => ({ path, message })));
}

/** The frames of a stream, in the order in which they were pushed. */
class Frames implements AsyncIterable<LifecycleRequest> {
  readonly #waiting: LifecycleRequest[] = [];
  #over = false;
  #wake: (() => void) | undefined;

  push(frame: LifecycleRequest): void {
    this.#waiting.push(frame);
    this.#wake?.();
  }

  end(): void {
    this.#over = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<LifecycleRequest> {
    for (;;) {
      while (this.#waiting.length > 0) {
        yield this.#waiting.shift()!;
      }
      if (this.#over) {
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
