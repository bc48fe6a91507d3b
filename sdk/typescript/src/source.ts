/** A job under a lease, as the server hands it out. */
export interface FetchedJob {
  id: string;
  namespace: string;
  queue: string;
  payload: unknown;
  /** The number of this attempt, from 1. */
  attempt: number;
  maxAttempts: number;
  /** Identifies the lease. */
  leaseEpoch: number;
  leaseExpiresMs: number;
  /** The checkpoint of an earlier attempt; undefined for none. */
  checkpoint?: unknown;
  tags: Readonly<Record<string, string>>;
  /** The previous job of the chain. */
  parentId?: string;
  /** The batch whose callback this is. */
  callbackOf?: string;
  /** The provider of models that the routing of the job or of its queue chose. */
  provider?: string;
  /** The model that the worker should ask. */
  model?: string;
  createdAtMs: number;
}

export interface FetchRequest {
  queues: readonly string[];
  workerId: string;
  count: number;
  leaseMs: number;
  waitMs: number;
  hostname: string;
  version: string;
}

export interface Progress {
  current: number;
  total?: number;
  message?: string;
}

/** Settles an attempt that succeeded. `result` and `checkpoint` are JSON. */
export interface Ack {
  id: string;
  leaseEpoch: number;
  result?: string;
  continue?: boolean;
  hold?: string;
  checkpoint?: string;
}

/** Settles an attempt that failed. */
export interface Fail {
  id: string;
  leaseEpoch: number;
  error: string;
  stack?: string;
  retryAfterMs?: number;
  snoozeMs?: number;
  fatal?: boolean;
  providerError?: { provider: string; kind: string; retryAfterMs: number };
}

/** Extends a lease. `checkpoint` is JSON. */
export interface Heartbeat {
  id: string;
  leaseEpoch: number;
  leaseMs: number;
  progress?: Progress;
  checkpoint?: string;
}

/** The result for one job of an ack, a fail or a heartbeat. */
export interface Outcome {
  id: string;
  ok: boolean;
  code: string;
  message: string;
  state: string;
}

/**
 * Provides jobs and settles them. `ack`, `fail` and `heartbeat` return one outcome for each job, in order;
 * after an error the outcome of every job is unknown. Jobs that a fetch has leased when its signal is
 * aborted are returned, not dropped.
 */
export interface Source {
  fetch(request: FetchRequest, signal: AbortSignal): Promise<FetchedJob[]>;
  ack(acks: readonly Ack[], signal: AbortSignal): Promise<Outcome[]>;
  fail(fails: readonly Fail[], signal: AbortSignal): Promise<Outcome[]>;
  heartbeat(workerId: string, beats: readonly Heartbeat[], signal: AbortSignal): Promise<Outcome[]>;
  close(): void;
}
