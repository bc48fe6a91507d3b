/** A fault of one field of a request. */
export interface FieldError {
  path: string;
  message: string;
}

/** The server refused a request. Match on `code`; the codes are listed in docs/errors.md. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    /** The code, such as `CS_QUEUE_DRAINING_CONFLICT`; empty for an answer that is not the server's. */
    readonly code: string,
    message: string,
    /** The HTTP status; 0 for an answer of the stream. */
    readonly status = 0,
    /** When the server admits a retry, in milliseconds; 0 if it does not know. */
    readonly retryAfterMs = 0,
    readonly fields: readonly FieldError[] = [],
    readonly requestId = "",
  ) {
    super(code === "" ? message : `${code}: ${message}`);
  }

  /** Reports whether the server refuses the key. */
  get denied(): boolean {
    return /^CS_(AUTHN|AUTHZ)_/.test(this.code);
  }

  /** Reports whether repeats of the request fail too. */
  get permanent(): boolean {
    return this.denied || this.code.startsWith("CS_VALIDATION_");
  }
}

/** The server did not answer. The request may have taken effect. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

/** Fails the job without a retry: it is dead, with the reason `fatal`. */
export class Fatal extends Error {
  override readonly name = "Fatal";
}

/** Fails the attempt. The job is retried after `delayMs`, at most 30 days, instead of its backoff. */
export class RetryAfter extends Error {
  override readonly name = "RetryAfter";

  constructor(
    readonly delayMs: number,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Retries the job after `delayMs`, at most 30 days, without counting the attempt. */
export class Snooze extends Error {
  override readonly name = "Snooze";

  constructor(readonly delayMs: number) {
    super(`snoozed for ${delayMs} ms`);
  }
}

/** The kinds of failures of a provider of models. */
export type FailureKind = "rate_limit" | "overloaded" | "error";

/**
 * The provider of the job failed. The job is retried at another target of its routing, without counting
 * the attempt. `retryAfterMs` is how long the provider asks to wait.
 */
export class ProviderError extends Error {
  override readonly name = "ProviderError";

  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly retryAfterMs = 0,
  ) {
    super(message);
  }
}

/** Why the signal of a handler was aborted. */
export type AbortReason =
  /** The job was cancelled. */
  | "cancelled"
  /** The job was leased to another worker, or deleted. */
  | "lease lost"
  /** The worker stops, and the time for its handlers is over. */
  | "stopped";

/** The reason with which the signal of a handler is aborted. */
export class Aborted extends Error {
  override readonly name = "Aborted";

  constructor(readonly reason: AbortReason) {
    super(`the handler was aborted: ${reason}`);
  }
}
