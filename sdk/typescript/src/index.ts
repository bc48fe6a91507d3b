export { Client, type ClientOptions, type EnqueuedJob, type JobOptions, type JobRecord, type JobState, type NewJob } from "./client.js";
export { Aborted, ApiError, Fatal, ProviderError, RetryAfter, Snooze, UnreachableError, type AbortReason, type FailureKind, type FieldError } from "./errors.js";
export type { Handler, Job, JobContext } from "./job.js";
export type { Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome, Progress, Source } from "./source.js";
export { Worker, type WorkerEvents, type WorkerOptions } from "./worker.js";
