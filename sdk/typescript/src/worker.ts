import { EventEmitter } from "node:events";
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

import { Client } from "./client.js";
import { Aborted, ApiError, type AbortReason } from "./errors.js";
import { HttpSource } from "./http.js";
import { Run, type Handler, type Job } from "./job.js";
import { maxFetchJobs, maxFetchQueues, maxFetchWaitMs, maxLeaseMs, maxSettleJobs, minLeaseMs } from "./limits.js";
import { Settler } from "./settler.js";
import type { Source } from "./source.js";
import { StreamSource } from "./stream.js";
import { Backoff, bounded, Notice, pause } from "./wait.js";

/** Settings of a worker. Times are milliseconds. */
export interface WorkerOptions {
  /** The number of handlers that run at once. Default: 10. */
  concurrency?: number;
  /** The number of jobs that are fetched in advance, so that no handler waits for the next one. They are leased. Default: `concurrency`. */
  ahead?: number;
  /** The duration of leases, from 1 s to 12 h. They are renewed after a third of it. Default: 30,000. */
  leaseMs?: number;
  /** How long one fetch waits for jobs, at most 60 s. Default: 20,000. */
  waitMs?: number;
  /** How long handlers may continue after `stop`. Default: 25,000. */
  stopTimeoutMs?: number;
  /** `stream` uses requests where a stream cannot be opened, and tries again later. Default: `stream`. */
  transport?: "stream" | "http";
  /** Names the worker in leases. Default: host, process and a random part. */
  id?: string;
  /** The version of the program, for the list of workers. */
  version?: string;
}

/** The events of a worker. */
export interface WorkerEvents {
  /** A handler begins. */
  started: [job: Job];
  /** A handler returned; its job is being settled. */
  completed: [job: Job];
  /** A handler threw; its job is being settled. */
  failed: [job: Job, error: unknown];
  /** The result of a handler is dropped, because the job is no longer this worker's. */
  dropped: [job: Job, reason: AbortReason];
  /** A job that no handler has finished returns to its queue. */
  returned: [job: Job];
  /** A stream was opened. */
  connected: [];
  /** A problem that the worker copes with: a request is repeated, the stream broke, an outcome was refused. */
  warning: [error: Error];
}

/** How long a fetch may take beyond its wait before the connection is considered dead, in milliseconds. */
const fetchGraceMs = 15_000;

/**
 * Runs handlers for the jobs of queues: it fetches ahead, keeps leases alive, settles in groups, and stops without
 * losing jobs. A handler runs at least once: what it does must be safe to repeat.
 */
export class Worker extends EventEmitter<WorkerEvents> implements AsyncDisposable {
  /** The name of the worker in leases. */
  readonly id: string;
  readonly #source: Source;
  readonly #options: Required<Omit<WorkerOptions, "id" | "transport">>;
  readonly #handlers = new Map<string, Handler>();
  readonly #inHand = new Map<string, Run>();
  readonly #queued: Run[] = []; // fetched, for the handlers
  readonly #handling = new Set<Promise<void>>();
  readonly #room = new Notice();
  readonly #stop = new AbortController(); // of fetches
  readonly #life = new AbortController(); // of heartbeats and settlements
  readonly #settler: Settler;
  #running: Promise<void> | undefined;
  #failure: Error | undefined;

  /** @param source the client of the namespace, or a source of jobs of one's own */
  constructor(source: Client | Source, options: WorkerOptions = {}) {
    super();
    const concurrency = options.concurrency ?? 10;
    this.#options = {
      concurrency,
      ahead: options.ahead ?? concurrency,
      leaseMs: options.leaseMs ?? 30_000,
      waitMs: options.waitMs ?? 20_000,
      stopTimeoutMs: options.stopTimeoutMs ?? 25_000,
      version: options.version ?? "",
    };
    this.id = options.id ?? `${hostname().replace(/[^\w.:-]/g, "-")}-${process.pid}-${randomBytes(4).toString("hex")}`;
    within("concurrency", concurrency, 1, Number.MAX_SAFE_INTEGER);
    within("ahead", this.#options.ahead, 0, Number.MAX_SAFE_INTEGER);
    within("leaseMs", this.#options.leaseMs, minLeaseMs, maxLeaseMs);
    within("waitMs", this.#options.waitMs, 1, maxFetchWaitMs);
    within("stopTimeoutMs", this.#options.stopTimeoutMs, 0, 2 ** 31 - 1);
    this.#source = source instanceof Client ? this.#sourceOf(source, options.transport ?? "stream") : source;
    this.#settler = new Settler(this.#source, this.id, this.#options.leaseMs, this.#life.signal, {
      settled: (run) => this.#settled(run),
      warning: (error) => this.#warn(error),
    });
  }

  #sourceOf(client: Client, transport: "stream" | "http"): Source {
    const requests = new HttpSource(client.requests, client.tenant, client.namespace);
    if (transport === "http") {
      return requests;
    }
    return new StreamSource({
      url: client.url,
      key: client.requests.key,
      tenant: client.tenant,
      namespace: client.namespace,
      fallback: requests,
      connected: () => this.emit("connected"),
      warning: (error) => this.emit("warning", error),
    });
  }

  /**
   * Registers the handler of a queue. Queues are fetched from in the order of their registration: a queue that is
   * never empty starves later ones. Call it before `run`.
   */
  handle<Payload = unknown>(queue: string, handler: Handler<Payload>): this {
    if (this.#running !== undefined) {
      throw new Error("handle must be called before run");
    }
    if (queue.startsWith("fn.")) {
      throw new Error(`queue ${queue} is served by the platform itself`);
    }
    this.#handlers.set(queue, handler as Handler);
    return this;
  }

  /**
   * Fetches and handles jobs until `stop` is called, one of `signals` arrives, or the server refuses the key or the
   * settings of the worker for good: then it throws an ApiError.
   */
  run(options: { signals?: NodeJS.Signals[] } = {}): Promise<void> {
    if (this.#running !== undefined) {
      throw new Error("run can be called once");
    }
    const queues = this.#handlers.size;
    if (queues === 0 || queues > maxFetchQueues) {
      throw new Error(`got handlers of ${queues} queues, want 1 to ${maxFetchQueues}`);
    }
    const stop = () => this.#stop.abort();
    options.signals?.forEach((name) => process.on(name, stop));
    this.#running = this.#run().finally(() => options.signals?.forEach((name) => process.off(name, stop)));
    return this.#running;
  }

  /**
   * Stops the worker: it returns jobs that no handler has started, lets the other handlers finish for
   * `stopTimeoutMs`, and settles their jobs. A handler that ignores its signal delays the end.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running?.catch(() => {}); // run reports the error
    this.#source.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Works until the stop, which goes backwards through the pipeline: fetch, handlers, settler, heartbeats. */
  async #run(): Promise<void> {
    const renewal = this.#beat();
    await this.#fetch();
    this.#queued.splice(0).forEach((run) => this.#return(run));
    const halt = setTimeout(() => this.#halt(), this.#options.stopTimeoutMs);
    while (this.#handling.size > 0) {
      await Promise.all(this.#handling);
    }
    clearTimeout(halt);
    await this.#settler.flush();
    this.#life.abort();
    await renewal;
    this.#source.close();
    if (this.#failure !== undefined) {
      throw this.#failure;
    }
  }

  /** Reports a problem. The worker stops if the server refuses its key. */
  #warn(error: Error): void {
    if (error.cause instanceof ApiError && error.cause.denied) {
      this.#fail(error.cause);
    } else {
      this.emit("warning", error);
    }
  }

  /** Stops the worker, whose jobs cannot be settled any more. */
  #fail(error: Error): void {
    this.#failure ??= error;
    this.#stop.abort();
    this.#halt();
  }

  /** Aborts the handlers that still run. */
  #halt(): void {
    this.#inHand.forEach((run) => run.controller.abort(new Aborted("stopped")));
  }

  /** Fetches jobs until the stop. After an error it pauses, for a growing time. */
  async #fetch(): Promise<void> {
    const { concurrency, ahead, leaseMs, waitMs, version } = this.#options;
    const stop = this.#stop.signal;
    const backoff = new Backoff(100, 5_000);
    while (!stop.aborted) {
      const count = Math.min(concurrency + ahead - this.#inHand.size, maxFetchJobs);
      if (count <= 0) {
        await this.#room.wait(stop);
        continue;
      }
      const request = { queues: [...this.#handlers.keys()], workerId: this.id, count, leaseMs, waitMs, hostname: hostname(), version };
      try {
        const jobs = await bounded(waitMs + fetchGraceMs, stop, (signal) => this.#source.fetch(request, signal));
        jobs.forEach((job) => this.#take(new Run(job, leaseMs)));
        backoff.reset();
      } catch (error) {
        if (stop.aborted) {
          return;
        }
        if (error instanceof ApiError && error.permanent) {
          return this.#fail(error);
        }
        this.#warn(new Error(`fetch: ${String(error)}`, { cause: error }));
        await pause(Math.max(backoff.next(), error instanceof ApiError ? Math.min(error.retryAfterMs, 5_000) : 0), stop);
      }
    }
  }

  /** Registers a job, and starts its handler or queues it. A job that is registered already had a lease that expired. */
  #take(run: Run): void {
    this.#inHand.get(run.job.id)?.lose("lease lost");
    this.#inHand.set(run.job.id, run);
    this.#queued.push(run);
    this.#fill();
  }

  /** Starts handlers while there are jobs and slots. */
  #fill(): void {
    while (!this.#stop.signal.aborted && this.#handling.size < this.#options.concurrency && this.#queued.length > 0) {
      const handling = this.#handle(this.#queued.shift()!).finally(() => {
        this.#handling.delete(handling);
        this.#fill();
      });
      this.#handling.add(handling);
    }
  }

  /** Runs the handler of a job, and passes its outcome to the settler unless the lease is lost. */
  async #handle(run: Run): Promise<void> {
    if (run.lost !== undefined) {
      return this.#settled(run);
    }
    const job = run.job as Job;
    const { signal } = run.controller;
    this.emit("started", job);
    let settlement;
    let failure: { error: unknown } | undefined;
    try {
      const handler = this.#handlers.get(job.queue)!;
      settlement = run.succeeded(await handler(job, run.context(() => this.#renewNow(run))));
    } catch (error) {
      settlement = run.failed(error);
      failure = { error };
    }
    if (run.lost !== undefined) {
      this.emit("dropped", job, run.lost);
      return this.#settled(run);
    }
    if (failure !== undefined && signal.aborted && isAbort(failure.error, signal)) {
      return this.#return(run);
    }
    this.#settler.add(settlement);
    if (failure === undefined) {
      this.emit("completed", job);
    } else {
      this.emit("failed", job, failure.error);
    }
  }

  /** Returns a job to its queue: the attempt does not count. */
  #return(run: Run): void {
    this.emit("returned", run.job);
    this.#settler.add(run.returned());
  }

  /** Unregisters a job. A job of the same id that was fetched again stays. */
  #settled(run: Run): void {
    if (this.#inHand.get(run.job.id) === run) {
      this.#inHand.delete(run.job.id);
    }
    this.#room.notify();
  }

  /** Renews the leases of all jobs in hand every third of a lease: two renewals may fail before a lease ends. */
  async #beat(): Promise<void> {
    const life = this.#life.signal;
    for (;;) {
      await pause(this.#options.leaseMs / 3, life);
      if (life.aborted) {
        return;
      }
      const runs = [...this.#inHand.values()];
      for (let at = 0; at < runs.length; at += maxSettleJobs) {
        try {
          await this.#renew(runs.slice(at, at + maxSettleJobs));
        } catch (error) {
          if (!life.aborted) {
            this.#warn(new Error(`heartbeat: ${String(error)}`, { cause: error }));
          }
        }
      }
    }
  }

  /** Sends one heartbeat for each job. A job whose lease is lost, or which was cancelled, has its handler aborted. */
  async #renew(runs: Run[]): Promise<void> {
    const beats = runs.map((run) => run.heartbeat());
    let outcomes;
    try {
      outcomes = await bounded(this.#options.leaseMs / 3, this.#life.signal, (signal) => this.#source.heartbeat(this.id, beats, signal));
      if (outcomes.length !== runs.length) {
        throw new Error(`got ${outcomes.length} outcomes for ${runs.length} jobs`);
      }
    } catch (error) {
      runs.forEach((run, i) => run.unsent(beats[i]!));
      throw error;
    }
    outcomes.forEach((o, i) => {
      if (o.ok) {
        runs[i]!.sent(beats[i]!);
      } else if (o.state === "cancelled") {
        runs[i]!.lose("cancelled");
      } else if (o.code === "CS_JOB_LEASE_LOST" || o.code === "CS_JOB_NOT_FOUND") {
        runs[i]!.lose("lease lost");
      } else {
        this.emit("warning", new ApiError(o.code, `heartbeat of job ${o.id}: ${o.message}`));
      }
    });
  }

  /** Sends the heartbeat of one job for its handler. */
  async #renewNow(run: Run): Promise<void> {
    run.controller.signal.throwIfAborted();
    await this.#renew([run]);
    run.controller.signal.throwIfAborted();
  }
}

/** Reports whether a handler ended because of its signal. */
function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && (error.name === "AbortError" || error.cause === signal.reason));
}

function within(name: string, value: number, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw new RangeError(`${name}: got ${value}, want an integer from ${least} to ${most}`);
  }
}
