import { Aborted, Fatal, ProviderError, RetryAfter, Snooze, type AbortReason } from "./errors.js";
import { delay, encode, maxCheckpointBytes, maxErrorBytes, maxProgressMessage, maxResultBytes, maxRetryAfterMs, maxStackBytes, truncate } from "./limits.js";
import type { Ack, Fail, FetchedJob, Heartbeat, Progress } from "./source.js";

/** A job that a handler runs. */
export interface Job<Payload = unknown> extends Readonly<FetchedJob> {
  readonly payload: Payload;
}

/** What a handler can do for its job. */
export interface JobContext {
  /** Is aborted when the job is cancelled, its lease is lost, or the worker stops and the time for its handlers is over. Its reason is an `Aborted`. */
  readonly signal: AbortSignal;
  /** Reports the progress of the job with the next heartbeat; only the last report in between is sent. */
  progress(current: number, total?: number, message?: string): void;
  /**
   * Stores a checkpoint, at most 256 KiB of JSON, from which a later attempt may continue: it finds it as
   * `job.checkpoint`. It is sent with the next heartbeat, or before the job fails or is returned.
   */
  checkpoint(value: unknown): void;
  /** Sends a heartbeat now, with the progress and the checkpoint. The worker sends heartbeats by itself, too. */
  heartbeat(): Promise<void>;
  /** Makes the job pending again with its checkpoint, instead of completed, when the handler returns. */
  continue(): void;
  /** Holds the job for approval, instead of completing it, when the handler returns. */
  hold(reason: string): void;
}

/** Runs a job. Its result is the result of the job, at most 1 MiB of JSON; an error fails the attempt, which is retried after its backoff unless it is a `Fatal`, `RetryAfter`, `Snooze` or `ProviderError`. */
export type Handler<Payload = unknown> = (job: Job<Payload>, context: JobContext) => unknown;

/** How one job is settled: by one of ack and fail. `beat` is sent before fail. */
export interface Settlement {
  run: Run;
  ack?: Ack;
  fail?: Fail;
  beat?: Heartbeat | undefined;
}

/** A job in hand, from its fetch until it is settled or its lease is lost. */
export class Run {
  /** Why the lease was lost. */
  lost: AbortReason | undefined;
  readonly controller = new AbortController();
  #progress: Progress | undefined; // not sent yet
  #checkpoint: string | undefined; // not sent yet
  #latest: string | undefined; // the last one of the handler
  #kept: string | undefined; // the last one that the queue has
  #continue = false;
  #hold = "";

  constructor(
    readonly job: FetchedJob,
    private readonly leaseMs: number,
  ) {}

  /** Returns what the handler sees. `heartbeat` sends the next heartbeat. */
  context(heartbeat: () => Promise<void>): JobContext {
    return {
      signal: this.controller.signal,
      heartbeat,
      progress: (current, total, message) => {
        this.#progress = {
          current: Math.round(current),
          ...(total === undefined ? {} : { total: Math.round(total) }),
          ...(message === undefined ? {} : { message: truncate(message, maxProgressMessage) }),
        };
      },
      checkpoint: (value) => {
        this.#checkpoint = this.#latest = encode("checkpoint", value, maxCheckpointBytes);
      },
      continue: () => {
        this.#continue = true;
      },
      hold: (reason) => {
        this.#hold = reason;
      },
    };
  }

  /** Aborts the handler after the lease was lost. */
  lose(reason: AbortReason): void {
    this.lost ??= reason;
    this.controller.abort(new Aborted(reason));
  }

  /** Returns the next heartbeat, and takes the progress and the checkpoint that are not sent yet. */
  heartbeat(): Heartbeat {
    const beat = this.#beat(this.#progress, this.#checkpoint);
    this.#progress = this.#checkpoint = undefined;
    return beat;
  }

  /** Restores the progress and the checkpoint of a heartbeat that failed, unless there are newer ones. */
  unsent(beat: Heartbeat): void {
    this.#progress ??= beat.progress;
    this.#checkpoint ??= beat.checkpoint;
  }

  /** Records that the queue has accepted a heartbeat. */
  sent(beat: Heartbeat): void {
    this.#kept = beat.checkpoint ?? this.#kept;
  }

  #beat(progress: Progress | undefined, checkpoint: string | undefined): Heartbeat {
    return {
      id: this.job.id,
      leaseEpoch: this.job.leaseEpoch,
      leaseMs: this.leaseMs,
      ...(progress === undefined ? {} : { progress }),
      ...(checkpoint === undefined ? {} : { checkpoint }),
    };
  }

  /** Returns the settlement of a handler that returned. A result that cannot be stored fails the attempt. */
  succeeded(value: unknown): Settlement {
    const ack: Ack = { id: this.job.id, leaseEpoch: this.job.leaseEpoch };
    if (this.#continue || this.#hold !== "") {
      if (this.#hold === "") {
        ack.continue = true;
      } else {
        ack.hold = this.#hold;
      }
      if (this.#latest !== undefined) {
        ack.checkpoint = this.#latest;
      }
    } else if (value !== undefined) {
      try {
        ack.result = encode("result", value, maxResultBytes);
      } catch (error) {
        return this.failed(error);
      }
    }
    return { run: this, ack };
  }

  /** Returns the settlement of an attempt that failed with `error`. */
  failed(error: unknown): Settlement {
    const fail: Fail = { id: this.job.id, leaseEpoch: this.job.leaseEpoch, error: truncate(error instanceof Error ? error.message || error.name : String(error), maxErrorBytes) };
    if (error instanceof Fatal) {
      fail.fatal = true;
    } else if (error instanceof RetryAfter) {
      fail.retryAfterMs = delay(error.delayMs);
    } else if (error instanceof Snooze) {
      fail.snoozeMs = delay(error.delayMs);
    } else if (error instanceof ProviderError && this.job.provider !== undefined) {
      fail.providerError = { provider: this.job.provider, kind: error.kind, retryAfterMs: Math.min(delay(error.retryAfterMs), maxRetryAfterMs) };
    } else if (error instanceof Error && error.stack !== undefined) {
      fail.stack = truncate(error.stack, maxStackBytes);
    }
    return { run: this, fail, beat: this.#unsaved() };
  }

  /** Returns the settlement that returns the job to its queue. The attempt does not count. */
  returned(): Settlement {
    return { run: this, fail: { id: this.job.id, leaseEpoch: this.job.leaseEpoch, error: "", snoozeMs: 0 }, beat: this.#unsaved() };
  }

  /** Returns the heartbeat with the last checkpoint, undefined if the queue has it: a fail has no field for one. */
  #unsaved(): Heartbeat | undefined {
    return this.#latest === undefined || this.#latest === this.#kept ? undefined : this.#beat(this.#progress, this.#latest);
  }
}
