import { ApiError } from "./errors.js";
import { Requests } from "./http.js";
import { bounded, pause } from "./wait.js";

/** Where jobs are, and the key to them. */
export interface ClientOptions {
  /** The URL of the server. Default: `SOUS_URL` of the environment, or http://127.0.0.1:8080. */
  url?: string;
  /** The API key. Default: `SOUS_KEY` of the environment, or none. */
  key?: string;
  /** Default: t_default. */
  tenant?: string;
  /** Default: default. */
  namespace?: string;
}

/** Options of a job. Those that are left out have the defaults of docs/queue.md. Times are Unix milliseconds. */
export interface JobOptions {
  priority?: "critical" | "high" | "normal" | "low";
  runAtMs?: number;
  expireAtMs?: number;
  uniqueKey?: string;
  uniqueTtlMs?: number;
  maxAttempts?: number;
  backoff?: "none" | "fixed" | "linear" | "exponential";
  baseDelayMs?: number;
  maxDelayMs?: number;
  jitter?: boolean;
  tags?: Record<string, string>;
  dependsOn?: string[];
  onDependencyFailure?: "fail" | "continue" | "hold";
  batchId?: string;
  hold?: boolean;
  /** A JSON Schema. */
  resultSchema?: unknown;
}

/** A job to add. */
export interface NewJob extends JobOptions {
  payload: unknown;
}

/** The result for one job of an enqueue. If `duplicate` is set, another job has the unique key, and `id` is that job. */
export interface EnqueuedJob {
  id: string;
  state: JobState;
  duplicate: boolean;
}

export type JobState = "waiting" | "scheduled" | "held" | "pending" | "active" | "retrying" | "completed" | "dead" | "cancelled";

/** A job with its current state. The other fields are those of docs/queue.md, as the API names them. */
export interface JobRecord {
  id: string;
  namespace: string;
  queue: string;
  payload: unknown;
  state: JobState;
  attempt: number;
  max_attempts?: number;
  result?: unknown;
  checkpoint?: unknown;
  progress?: unknown;
  hold_reason?: string;
  dead_reason?: string;
  errors?: { attempt: number; error: string; stack?: string; at_ms: number }[];
  [field: string]: unknown;
}

/** How long a request may take, in milliseconds, and how often it is sent if the server asks for a repeat. */
const requestMs = 30_000;
const sends = 4;

/** Adds and reads jobs of one namespace. It holds no connection of its own. */
export class Client {
  readonly tenant: string;
  readonly namespace: string;
  /** @internal */
  readonly requests: Requests;

  constructor(options: ClientOptions = {}) {
    this.requests = new Requests(options.url ?? process.env["SOUS_URL"] ?? "http://127.0.0.1:8080", options.key ?? process.env["SOUS_KEY"] ?? "");
    this.tenant = options.tenant ?? "t_default";
    this.namespace = options.namespace ?? "default";
  }

  /** The URL of the server. */
  get url(): string {
    return this.requests.base;
  }

  /** Adds a job. It is durable when the promise is resolved. */
  async enqueue(queue: string, payload: unknown, options: JobOptions & { idempotencyKey?: string; signal?: AbortSignal } = {}): Promise<EnqueuedJob> {
    const { idempotencyKey, signal, ...job } = options;
    const [added] = await this.enqueueAll(queue, [{ payload, ...job }], { ...(idempotencyKey === undefined ? {} : { idempotencyKey }), ...(signal === undefined ? {} : { signal }) });
    return added!;
  }

  /**
   * Adds up to 1,000 jobs, all or none. A repeat under the same idempotency key within a day adds nothing. Repeat
   * an enqueue that failed with UnreachableError under a key only: it may have added the jobs.
   */
  async enqueueAll(queue: string, jobs: readonly NewJob[], options: { idempotencyKey?: string; signal?: AbortSignal } = {}): Promise<EnqueuedJob[]> {
    const path = `/v1/tenants/${encodeURIComponent(this.tenant)}/namespaces/${encodeURIComponent(this.namespace)}/queues/${encodeURIComponent(queue)}/jobs`;
    const headers = options.idempotencyKey === undefined ? {} : { "idempotency-key": options.idempotencyKey };
    const answer = (await this.#send("POST", path, JSON.stringify({ jobs: jobs.map(fromNewJob) }), headers, options.signal)) as { jobs: EnqueuedJob[] };
    return answer.jobs;
  }

  /** Returns a job. It fails with ApiError `CS_JOB_NOT_FOUND`. */
  async job(id: string, options: { signal?: AbortSignal } = {}): Promise<JobRecord> {
    const path = `/v1/tenants/${encodeURIComponent(this.tenant)}/jobs/${encodeURIComponent(id)}`;
    return (await this.#send("GET", path, undefined, {}, options.signal)) as JobRecord;
  }

  /** Sends a request, and repeats it if that is safe and the server asks for it. */
  #send(method: string, path: string, body: string | undefined, headers: Record<string, string>, signal?: AbortSignal): Promise<unknown> {
    return bounded(requestMs, signal, async (bound) => {
      for (let sent = 1; ; sent++) {
        try {
          return await this.requests.send(method, path, body, bound, headers);
        } catch (error) {
          const repeatable = method === "GET" || "idempotency-key" in headers;
          if (!(error instanceof ApiError) || error.status !== 503 || error.retryAfterMs === 0 || !repeatable || sent >= sends) {
            throw error;
          }
          await pause(error.retryAfterMs, bound);
          bound.throwIfAborted();
        }
      }
    });
  }
}

function fromNewJob(j: NewJob): Record<string, unknown> {
  return {
    payload: j.payload,
    priority: j.priority,
    run_at_ms: j.runAtMs,
    expire_at_ms: j.expireAtMs,
    unique_key: j.uniqueKey,
    unique_ttl_ms: j.uniqueTtlMs,
    max_attempts: j.maxAttempts,
    backoff: j.backoff,
    base_delay_ms: j.baseDelayMs,
    max_delay_ms: j.maxDelayMs,
    jitter: j.jitter,
    tags: j.tags,
    depends_on: j.dependsOn,
    on_dependency_failure: j.onDependencyFailure,
    batch_id: j.batchId,
    hold: j.hold,
    result_schema: j.resultSchema,
  };
}
