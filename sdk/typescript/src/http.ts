import { ApiError, UnreachableError, type FieldError } from "./errors.js";
import { partsOf } from "./limits.js";
import type { Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome, Source } from "./source.js";
import { pause } from "./wait.js";

// Bounds of one call in bytes, below those of the server.
const maxAckBytes = 7 << 20;
const maxFailBytes = 900 << 10;
const maxBeatBytes = 7 << 20;

/** How long a fetch that is cancelled waits for jobs that the server may just have leased, in milliseconds. */
const lastJobsMs = 500;

/** Sends requests to one server. */
export class Requests {
  readonly base: string;

  constructor(
    url: string,
    readonly key: string,
  ) {
    const at = new URL(url);
    if (at.protocol !== "http:" && at.protocol !== "https:") {
      throw new TypeError(`url: got ${at.protocol}, want http: or https:`);
    }
    if (at.username !== "" || at.search !== "" || at.hash !== "") {
      throw new TypeError("url: no user, query or fragment is allowed");
    }
    this.base = at.href.replace(/\/+$/, "");
  }

  /** Sends a request and returns the decoded answer. Statuses of `accepted` are no errors. */
  async send(method: string, path: string, body: string | undefined, signal: AbortSignal, headers: Record<string, string> = {}, accepted: number[] = []): Promise<unknown> {
    const all: Record<string, string> = { "user-agent": "code-sous-typescript", ...headers };
    if (body !== undefined) {
      all["content-type"] = "application/json";
    }
    if (this.key !== "") {
      all["authorization"] = `Bearer ${this.key}`;
    }
    let status: number;
    let text: string;
    try {
      const response = await fetch(this.base + path, { method, headers: all, body: body ?? null, signal, redirect: "error" });
      status = response.status;
      text = await response.text();
    } catch (error) {
      signal.throwIfAborted();
      throw new UnreachableError(`${this.base} did not answer: ${reasonOf(error)}`, { cause: error });
    }
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      throw new ApiError("", `${this.base} answered ${status} without JSON`, status);
    }
    if (status >= 300 && !(accepted.includes(status) && isObject(answer) && "jobs" in answer)) {
      throw problem(status, answer);
    }
    return answer;
  }
}

/** Returns the text of an error of fetch, whose cause has the reason. */
function reasonOf(error: unknown): string {
  if (error instanceof Error) {
    return error.cause instanceof Error ? error.cause.message || String((error.cause as NodeJS.ErrnoException).code) : error.message;
  }
  return String(error);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Returns the error of an answer that refuses a request. */
function problem(status: number, answer: unknown): ApiError {
  if (!isObject(answer) || typeof answer["code"] !== "string") {
    return new ApiError("", `the answer has status ${status} and no code`, status);
  }
  return new ApiError(
    answer["code"],
    String(answer["detail"] ?? ""),
    status,
    Number(answer["retry_after_ms"] ?? 0),
    (answer["errors"] as FieldError[] | undefined) ?? [],
    String(answer["request_id"] ?? ""),
  );
}

/** A source that sends a request for each call. */
export class HttpSource implements Source {
  readonly #path: string;

  constructor(
    private readonly requests: Requests,
    tenant: string,
    private readonly namespace: string,
  ) {
    this.#path = `/v1/tenants/${encodeURIComponent(tenant)}/jobs:`;
  }

  async fetch(request: FetchRequest, signal: AbortSignal): Promise<FetchedJob[]> {
    const body = JSON.stringify({
      namespace: this.namespace,
      queues: request.queues,
      worker_id: request.workerId,
      count: request.count,
      lease_ms: request.leaseMs,
      wait_ms: request.waitMs,
      hostname: request.hostname,
      version: request.version,
    });
    // The server releases jobs if it sees that their fetch has gone. It cannot see that of an answer on its way.
    const end = new AbortController();
    const cancel = () => void pause(lastJobsMs, end.signal).then(() => end.abort(signal.reason));
    signal.throwIfAborted();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const answer = (await this.requests.send("POST", `${this.#path}fetch`, body, end.signal)) as { jobs: WireJob[] };
      return answer.jobs.map(toJob);
    } finally {
      signal.removeEventListener("abort", cancel);
      end.abort();
    }
  }

  ack(acks: readonly Ack[], signal: AbortSignal): Promise<Outcome[]> {
    const size = (a: Ack) => (a.result?.length ?? 0) * 3 + (a.checkpoint?.length ?? 0) * 3 + (a.hold?.length ?? 0) * 6;
    return this.#settle("ack", acks, maxAckBytes, size, (part) => `{"acks":[${part.map(fromAck).join()}]}`, signal);
  }

  fail(fails: readonly Fail[], signal: AbortSignal): Promise<Outcome[]> {
    const size = (f: Fail) => 6 * (f.error.length + (f.stack?.length ?? 0));
    return this.#settle("fail", fails, maxFailBytes, size, (part) => `{"fails":[${part.map(fromFail).join()}]}`, signal);
  }

  heartbeat(workerId: string, beats: readonly Heartbeat[], signal: AbortSignal): Promise<Outcome[]> {
    const size = (b: Heartbeat) => (b.checkpoint?.length ?? 0) * 3 + 6 * (b.progress?.message?.length ?? 0);
    const head = `{"worker_id":${JSON.stringify(workerId)},"jobs":[`;
    return this.#settle("heartbeat", beats, maxBeatBytes, size, (part) => `${head}${part.map(fromHeartbeat).join()}]}`, signal);
  }

  close(): void {}

  /** Sends jobs in requests of bounded size, one after the other. */
  async #settle<T>(verb: string, items: readonly T[], most: number, size: (item: T) => number, body: (part: T[]) => string, signal: AbortSignal): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (const part of partsOf(items, most, size)) {
      // The status is 409 if no job of the call could be settled.
      const answer = (await this.requests.send("POST", this.#path + verb, body(part), signal, {}, [409])) as { jobs: Partial<Outcome>[] };
      outcomes.push(...answer.jobs.map((o) => ({ id: o.id ?? "", ok: o.ok ?? false, code: o.code ?? "", message: o.message ?? "", state: o.state ?? "" })));
    }
    return outcomes;
  }
}

/** A job in an answer. */
interface WireJob {
  id: string;
  namespace: string;
  queue: string;
  payload: unknown;
  attempt: number;
  max_attempts: number;
  lease_epoch: number;
  lease_expires_ms: number;
  checkpoint?: unknown;
  tags?: Record<string, string>;
  parent_id?: string;
  callback_of?: string;
  provider?: string;
  model?: string;
  created_at_ms: number;
}

function toJob(j: WireJob): FetchedJob {
  return {
    id: j.id,
    namespace: j.namespace,
    queue: j.queue,
    payload: j.payload,
    attempt: j.attempt,
    maxAttempts: j.max_attempts,
    leaseEpoch: j.lease_epoch,
    leaseExpiresMs: j.lease_expires_ms,
    ...("checkpoint" in j ? { checkpoint: j.checkpoint } : {}),
    tags: j.tags ?? {},
    ...(j.parent_id ? { parentId: j.parent_id } : {}),
    ...(j.callback_of ? { callbackOf: j.callback_of } : {}),
    ...(j.provider ? { provider: j.provider } : {}),
    ...(j.model ? { model: j.model } : {}),
    createdAtMs: j.created_at_ms,
  };
}

/** Returns a JSON object of fields, and of fields that are JSON already. */
function object(fields: Record<string, unknown>, encoded: Record<string, string | undefined> = {}): string {
  const rest = Object.entries(encoded).filter(([, text]) => text !== undefined);
  const head = JSON.stringify(fields).slice(0, -1);
  return `${head}${rest.map(([name, text]) => `,${JSON.stringify(name)}:${text}`).join("")}}`;
}

function fromAck(a: Ack): string {
  return object({ id: a.id, lease_epoch: a.leaseEpoch, continue: a.continue, hold: a.hold }, { result: a.result, checkpoint: a.checkpoint });
}

function fromFail(f: Fail): string {
  const e = f.providerError;
  return object({
    id: f.id,
    lease_epoch: f.leaseEpoch,
    error: f.error,
    stack: f.stack,
    retry_after_ms: f.retryAfterMs,
    snooze_ms: f.snoozeMs,
    fatal: f.fatal,
    provider_error: e && { provider: e.provider, kind: e.kind, retry_after_ms: e.retryAfterMs },
  });
}

function fromHeartbeat(b: Heartbeat): string {
  return object({ id: b.id, lease_epoch: b.leaseEpoch, lease_ms: b.leaseMs, progress: b.progress }, { checkpoint: b.checkpoint });
}
