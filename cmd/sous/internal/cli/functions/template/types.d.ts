// The declarations of the platform for editors and for tsc. sous fn init writes this file;
// it is not part of the function. A newer sous may declare more: sous fn init in an empty
// folder writes its declarations.

/** The interface of the platform. */
declare const cs: Cs;

interface Cs {
  /** The activation's log. */
  readonly log: CsLog;
  /** The version's environment, frozen. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Small values by key, for counters and caches. Capability: `kv`. */
  readonly kv: CsKv;
  /** Documents with revisions, times-to-live and listings. Capability: `storage`. */
  readonly storage: CsStorage;
  /** HTTP. Capability: `http`. */
  readonly http: CsHttp;
  /** Jobs. Capability: `queue`. */
  readonly queue: CsQueue;
  /**
   * Runs another function to its end and returns its result. Capability: `invoke`.
   * The callee may run for the remaining time of this activation; calls nest at most 8 deep.
   * @param name of a function of this namespace, or `namespace/name` of the tenant
   * @throws {InvokeError} if the function failed, with its `activationId`
   */
  invoke<T = any>(name: string, event?: unknown, options?: InvokeOptions): Promise<T>;
  /**
   * Begins the answer, which goes out as it is written. The handler then returns nothing; the
   * answer ends with it, or with close.
   */
  respond(status?: number, headers?: HeadersInit): AnswerWriter;
  /** The job that this activation is an attempt of, for asynchronous invocations. */
  readonly job: CsJob;
  /**
   * A durable step of an asynchronous run: calls `fn` and records its result. A later activation of
   * the run returns the recorded result and does not call `fn` again. Steps may run in parallel; do
   * not call a step within another one.
   * @throws {StepError} when all attempts have failed
   */
  step<T>(name: string, fn: (attempt: { attempt: number }) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /** Sleeps, without a sandbox if it takes longer than a second: milliseconds, or text such as `"5m"`. */
  sleep(duration: Duration): Promise<void>;
  /** Waits for an event that is sent to the run, and returns its payload; `null` when the timeout, by default 7 days, is over. */
  waitForEvent<T = any>(name: string, options?: { timeout?: Duration }): Promise<T | null>;
  /** Holds the run until its job is approved or rejected. */
  waitForApproval(options?: ApprovalOptions): Promise<Approval>;
  /** Cadence: activities, and workflows. Capability for workflows: `cadence`. */
  readonly cadence: CsCadence;
  /** Secrets of the namespace. Capability: `secrets`. */
  readonly secrets: CsSecrets;
  /** Models of the tenant's providers. Capability: `ai`. */
  readonly ai: CsAi;
  /** Servers of the Model Context Protocol. Capability: `http`, with the host of the server. */
  readonly mcp: CsMcp;
}

interface CsMcp {
  /**
   * Connects to a server by streamable HTTP. `secret` names a secret that is sent as bearer token.
   * @throws {McpError}
   */
  connect(url: string | URL, options?: { headers?: HeadersInit; secret?: string; signal?: AbortSignal }): Promise<McpClient>;
}

/**
 * `code` is that of the server's error, or `http`, `version`, `too_large`, `bad_answer`, `no_answer` or
 * `closed`. Failures of `fetch` are its errors.
 */
interface McpError extends Error {
  code: number | string;
  data?: any;
  /** The status of the server's answer. */
  status?: number;
}

interface McpOptions {
  /** Cancels the request, and notifies the server. */
  signal?: AbortSignal;
  onProgress?: (progress: { progress: number; total?: number; message?: string }) => void;
}

interface McpClient {
  readonly protocolVersion: string;
  readonly serverInfo: { name: string; version: string; title?: string };
  readonly capabilities: Record<string, any>;
  readonly instructions?: string;
  listTools(params?: { cursor?: string }, options?: McpOptions): Promise<{ tools: McpTool[]; nextCursor?: string }>;
  callTool(name: string, args?: Record<string, unknown>, options?: McpOptions): Promise<McpToolResult>;
  listResources(params?: { cursor?: string }, options?: McpOptions): Promise<{ resources: any[]; nextCursor?: string }>;
  listResourceTemplates(params?: { cursor?: string }, options?: McpOptions): Promise<{ resourceTemplates: any[]; nextCursor?: string }>;
  readResource(uri: string, options?: McpOptions): Promise<{ contents: { uri: string; mimeType?: string; text?: string; blob?: string }[] }>;
  listPrompts(params?: { cursor?: string }, options?: McpOptions): Promise<{ prompts: any[]; nextCursor?: string }>;
  getPrompt(name: string, args?: Record<string, string>, options?: McpOptions): Promise<{ description?: string; messages: any[] }>;
  ping(options?: McpOptions): Promise<object>;
  /** Sends any other request. */
  request<T = any>(method: string, params?: object, options?: McpOptions): Promise<T>;
  /** Ends the session. Connections that are open when the activation ends need no call. */
  close(): Promise<void>;
}

interface McpTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: object;
  outputSchema?: object;
}

interface McpToolResult {
  content: { type: string; text?: string; [member: string]: any }[];
  structuredContent?: any;
  isError?: boolean;
}

interface CsAi {
  /**
   * Asks a model and returns its answer.
   * @throws {AiError}
   */
  chat(request: AiChat, options?: { signal?: AbortSignal }): Promise<AiAnswer>;
  /**
   * Asks a model and returns its answer while it arrives.
   * @throws {AiError} also in the middle of the stream
   */
  stream(request: AiChat, options?: { signal?: AbortSignal }): Promise<AiStream>;
  /**
   * Returns the vectors of texts.
   * @throws {AiError}
   */
  embed(request: AiEmbed, options?: { signal?: AbortSignal }): Promise<AiEmbeddings>;
}

/** `code` is one of `CS_RUNTIME_AI_…`. */
interface AiError extends CsError {
  provider?: string;
  /** The status of the provider's answer. */
  status?: number;
  /** How long to wait before another call. */
  retryAfterMs?: number;
}

interface AiChat {
  /** A provider or a route. It can be left out if the manifest names exactly one. */
  provider?: string;
  /** The default is the first model of the provider. */
  model?: string;
  messages: AiMessage[];
  tools?: { name: string; description?: string; parameters?: object }[];
  tool_choice?: "auto" | "none" | "required" | { name: string };
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
  stop?: string[];
  /** For providers of the kind openai. */
  response_format?: object;
  /** Further fields of the provider's own request. */
  extra?: Record<string, unknown>;
  /** A name under which the usage is counted in the iterations of a job. */
  phase?: string;
}

interface AiMessage {
  role: "system" | "user" | "assistant" | "tool";
  content?: string | AiPart[] | null;
  tool_calls?: AiToolCall[];
  tool_call_id?: string;
}

type AiPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

interface AiToolCall {
  id: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
}

interface AiUsage {
  input_tokens: number;
  output_tokens: number;
  cache_creation_tokens: number;
  cache_read_tokens: number;
  /** In dollars, if the model has a price. */
  cost_usd?: string;
  /** The provider did not say. */
  estimated?: boolean;
}

interface AiAnswer {
  text: string;
  tool_calls: AiToolCall[];
  /** The answer as a message, for the next request. */
  message: AiMessage;
  finish_reason: string;
  provider: string;
  model: string;
  usage: AiUsage;
}

type AiDelta =
  | { type: "text"; text: string }
  | { type: "tool_call"; index?: number; id?: string; name?: string; arguments?: string }
  | { type: "end"; finish_reason?: string; provider: string; model: string; usage: AiUsage };

interface AiStream extends AsyncIterableIterator<AiDelta> {
  /** Reads the answer to its end. */
  final(): Promise<AiAnswer>;
  /** The deltas as server-sent events. */
  toReadableStream(): ReadableStream<Uint8Array>;
  /** An answer that passes the deltas on as server-sent events. */
  toResponse(init?: ResponseInit): Response;
}

interface AiEmbed {
  provider?: string;
  model?: string;
  input: string[];
  dimensions?: number;
  extra?: Record<string, unknown>;
  phase?: string;
}

interface AiEmbeddings {
  embeddings: number[][];
  provider: string;
  model: string;
  usage: AiUsage;
}

interface AnswerWriter {
  /** Resolves when the chunk is on its way: await it, so that a slow client slows the function down. Rejects when the client has left. */
  write(chunk: string | ArrayBuffer | ArrayBufferView): Promise<void>;
  close(): void;
}

/** An error of the platform. `code` is for programs, `message` for people. */
interface CsError extends Error {
  code: string;
}

interface CsLog {
  /** Logs one value as JSON, several as an array of them. */
  debug(...values: unknown[]): void;
  /** Logs one value as JSON, several as an array of them. */
  info(...values: unknown[]): void;
  /** Logs one value as JSON, several as an array of them. */
  warn(...values: unknown[]): void;
  /** Logs one value as JSON, several as an array of them. */
  error(...values: unknown[]): void;
}

interface CsKv {
  /** Returns the value of a key of 1 to 512 bytes, `undefined` if there is none. */
  get<T = any>(key: string): Promise<T | undefined>;
  /** Stores JSON of at most 64 KiB, without an end or for `ttlSeconds`. */
  set(key: string, value: unknown, options?: { ttlSeconds?: number }): Promise<void>;
  /** Deletes a key and reports whether it had a value. */
  del(key: string): Promise<boolean>;
}

/** Every operation rejects with a {@link StorageError}. */
interface CsStorage {
  /** Writes a document and replaces the existing one. */
  put(request: DocumentPut): Promise<DocumentHead>;
  /** Reads a document. Rejects with `NOT_FOUND` if there is none. */
  get<T = any>(request: DocumentGet): Promise<StoredDocument<T>>;
  /** Lists documents by key, a page at a time. */
  list<T = any>(request: DocumentList): Promise<DocumentPage<T>>;
  /** Deletes a document. Without `ifRevision`, a missing document is not an error. */
  delete(request: DocumentGet): Promise<void>;
  /** Writes up to 20 documents, all or none. */
  bulkPut(request: { namespace: string; items: DocumentItem[] }): Promise<{ items: DocumentResult[] }>;
  /** Makes up to 20 checks and writes in one namespace, all or none. */
  transact(request: { namespace: string; operations: DocumentStep[] }): Promise<{ items: DocumentResult[] }>;
}

interface DocumentItem {
  /** 1 to 128 characters, no slash. */
  key: string;
  /** JSON of at most 64 KiB. */
  value: unknown;
  /** An object of at most 4 KiB. Lists can be filtered by its members. */
  metadata?: Record<string, unknown>;
  /** 60 to 2,592,000 (30 days); without it the document does not expire. */
  ttlSeconds?: number | null;
  /** The current revision that the document must have; 0: it must not exist. */
  ifRevision?: number | null;
}

interface DocumentPut extends DocumentItem {
  namespace: string;
}

interface DocumentGet {
  namespace: string;
  key: string;
  /** The current revision that the document must have. */
  ifRevision?: number | null;
}

interface DocumentList {
  namespace: string;
  /** `nextCursor` of the previous page. */
  cursor?: string;
  /** 1 to 100; the default is 25. */
  limit?: number;
  keyPrefix?: string;
  /** Only documents whose metadata has these members. */
  metadata?: Record<string, unknown>;
  includeMetadata?: boolean;
  includeValues?: boolean;
}

type DocumentStep =
  | { op: "check"; key: string; ifRevision: number }
  | ({ op: "put" } & DocumentItem)
  | { op: "delete"; key: string; ifRevision?: number | null };

interface DocumentHead {
  namespace: string;
  key: string;
  /** The number of writes of the key, from 1. */
  revision: number;
  /** RFC 3339, `null` for a document that does not expire. */
  ttlExpiresAt: string | null;
  createdAt: string;
  updatedAt: string;
}

interface StoredDocument<T = any> extends DocumentHead {
  value: T;
  metadata?: Record<string, any>;
}

interface DocumentPage<T = any> {
  /** With `value` and `metadata` if the request includes them. */
  items: (DocumentHead & { value?: T; metadata?: Record<string, any> })[];
  /** `null` at the end. */
  nextCursor: string | null;
}

interface DocumentResult {
  key: string;
  /** 0 for a key that has no document. */
  revision: number;
  ttlExpiresAt: string | null;
}

interface StorageError extends CsError {
  code:
    | "REVISION_MISMATCH" | "QUOTA_EXCEEDED" | "VALIDATION_FAILED" | "NOT_FOUND" | "UNAUTHORIZED" | "RATE_LIMITED"
    | "INTERNAL_ERROR" | "BULK_PARTIAL_FAILURE" | (string & {});
  /** The HTTP status of the REST API for this code. */
  status: number;
  /** The invalid fields. */
  errors?: { path: string; message: string }[];
  /** The items that failed, with the reasons. */
  items?: { index: number; code: string; message?: string }[];
  /** The quota that was reached. */
  quota?: { scope: "namespace" | "tenant"; unit: "records" | "bytes"; limit: number; used: number };
}

interface CsHttp {
  /** The global `fetch`. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
}

interface CsQueue {
  /**
   * Adds a job to a queue of this namespace. It is durable when this resolves.
   * @param payload any JSON of at most 1 MiB
   */
  enqueue(queue: string, payload?: unknown, options?: EnqueueOptions): Promise<EnqueuedJob>;
}

interface EnqueuedJob {
  id: string;
  state: "waiting" | "scheduled" | "held" | "pending" | "active" | "retrying" | "completed" | "dead" | "cancelled";
  /** The unique key was held: `id` is the job that holds it. */
  duplicate: boolean;
}

interface JobOptions {
  priority?: "critical" | "high" | "normal" | "low";
  /** The delay before the job may start. Excludes `runAtMs`. */
  delaySeconds?: number;
  /** The time before which the job may not start, in milliseconds since 1970. Excludes `delaySeconds`. */
  runAtMs?: number;
  /** The time at which a job that has not started is dead, in milliseconds since 1970. */
  expireAtMs?: number;
  /** At most one job with this key exists that has not ended. */
  uniqueKey?: string;
  /** The longest time that the key is held: a day by default, at most 30 days. */
  uniqueTtlSeconds?: number;
  /** The default is 4, the maximum 1,000. */
  maxAttempts?: number;
  backoff?: "none" | "fixed" | "linear" | "exponential";
  baseDelayMs?: number;
  maxDelayMs?: number;
  jitter?: boolean;
  tags?: Record<string, string>;
  /** The job waits for approval. */
  hold?: boolean;
  /** A JSON Schema that the job's result must match. */
  resultSchema?: object;
}

interface EnqueueOptions extends JobOptions {
  /** A repeated call with this key within a day returns the same job. */
  idempotencyKey?: string;
  /** Jobs of this namespace that must complete first. */
  dependsOn?: string[];
  onDependencyFailure?: "fail" | "continue" | "hold";
  batchId?: string;
  /** The steps that follow the job. */
  chain?: { steps?: JobStep[]; onFailure?: JobStep; onExit?: JobStep };
}

interface JobStep extends JobOptions {
  /** The default is the queue of the previous job. */
  queue?: string;
  payload?: unknown;
}

interface InvokeOptions {
  /** The default is `prod`, unless `version` is set. */
  alias?: string;
  version?: number;
}

interface InvokeError extends CsError {
  /** The activation that failed; undefined if the function did not run. */
  activationId?: string;
  status?: "error" | "timeout" | "cancelled";
  /** The error of the function; `code` is the code that it set. */
  cause?: { type: string; message: string; code?: string };
}

/** Outside of a job its properties are undefined and its methods reject. */
interface CsJob {
  readonly id: string | undefined;
  readonly queue: string | undefined;
  /** The number of the attempt, from 1. */
  readonly attempt: number | undefined;
  readonly maxAttempts: number | undefined;
  /** Reports the progress of the job: a percentage, or counts. At most two reports a second are sent. */
  progress(done: number | { current: number; total?: number; message?: string }): Promise<void>;
  /** Stores JSON of at most 256 KiB for the next attempt. It is sent within a second, and at the end of the attempt. */
  checkpoint(value: unknown): Promise<void>;
  /** The last checkpoint of the previous attempts, `undefined` if there is none. */
  lastCheckpoint<T = any>(): T | undefined;
}

/** A number of milliseconds, or text with a unit: `"30s"`, `"5m"`, `"2h"`, `"7d"`. */
type Duration = number | string;

interface StepOptions {
  /** By default 4 attempts, with backoffs of 1, 2 and 4 seconds. */
  retry?: { maxAttempts?: number; backoffMs?: Duration; maxBackoffMs?: Duration };
  /** The longest time of an attempt. */
  timeout?: Duration;
}

interface StepError extends CsError {
  /** The name of the step. */
  step: string;
  attempts: number;
  /** The code of what the last attempt threw. */
  causeCode?: string;
}

interface ApprovalOptions {
  /** What is to be approved, for the people who decide: at most 1 KiB. */
  message?: string;
  timeout?: Duration;
  /** The decision when the timeout is over: `false` unless set. */
  default?: boolean;
  /** The name of the step, `"approval"` unless set. */
  name?: string;
}

interface Approval {
  approved: boolean;
  /** The key that decided. */
  by?: string;
  comment?: string;
  /** The names of the keys that voted. */
  voters?: string[];
  timedOut?: true;
}

interface CsCadence {
  /** Records an activity's progress: JSON of at most 64 KiB. */
  heartbeat(details?: unknown): Promise<void>;
  /** The last details that the previous attempt recorded. */
  lastHeartbeat<T = any>(): T | undefined;
  /** Starts a workflow. */
  start(workflowType: string, options: WorkflowStart): Promise<{ workflowId: string; runId: string }>;
  /** Signals a running workflow. */
  signal(workflowType: string, options: WorkflowSignal): Promise<void>;
}

interface WorkflowStart {
  domain: string;
  tasklist: string;
  /** The default is a new id. */
  workflowId?: string;
  /** JSON of at most 1 MiB. */
  input?: unknown;
  executionTimeoutSeconds?: number;
  decisionTimeoutSeconds?: number;
  idReuse?: "allow" | "allow_failed_only" | "reject";
}

interface WorkflowSignal {
  domain: string;
  workflowId: string;
  /** The default is the current run. */
  runId?: string;
  signal: string;
  input?: unknown;
}

interface CsSecrets {
  /** Returns the current value of a secret. */
  get(name: string): Promise<string>;
}

/** The handler's second argument. */
interface Context {
  readonly activation_id: string;
  /** The time at which the activation is interrupted, in milliseconds since 1970. */
  readonly deadline_ms: number;
  readonly tenant: string;
  readonly namespace: string;
  readonly function: string;
  readonly version: number;
  readonly ref: { alias?: string; version: number };
  /** The cause of the invocation; the form of `source` depends on `type`. */
  readonly trigger: { type: "http" | "api" | "schedule" | "cadence" | "queue"; source?: any };
  /** The identity on whose behalf the function runs. */
  readonly principal: { sub: string; roles: string[] };
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly request_id: string;
  /** Returns the remaining time in milliseconds. */
  remainingMs(): number;
  /** Lets the activation end when the promise has settled, although its answer goes out before. */
  waitUntil(promise: Promise<unknown>): void;
  /** Aborts when the caller leaves before the answer is complete. */
  readonly signal: AbortSignal;
  /**
   * The global scope that serves the activation. With isolation "instance" it serves many:
   * module variables persist between them.
   */
  readonly instance: {
    readonly id: string;
    readonly ageMs: number;
    /** Activations that the scope served before this one. */
    readonly activations: number;
  };
}

/** A function. Its result is JSON of at most 6 MiB. */
type Handler<Event = any, Result = any> = (event: Event, ctx: Context) => Result | Promise<Result>;

/** A default export with handlers, as in Workers. */
interface Handlers {
  /** Requests to the HTTP endpoint, and calls that no other handler takes: their event is the JSON of a POST. */
  fetch?(request: Request, env: Cs["env"], ctx: Context): Response | Promise<Response>;
  /** Ticks of schedules. */
  scheduled?(event: ScheduledEvent, env: Cs["env"], ctx: Context): void | Promise<void>;
  /** The jobs of a queue that triggers the function, and asynchronous invocations, each in a batch of one. */
  queue?(batch: MessageBatch, env: Cs["env"], ctx: Context): BatchResult | Promise<BatchResult>;
}

interface ScheduledEvent {
  readonly type: "scheduled";
  /** The time of the tick, in milliseconds since 1970. */
  readonly scheduledTime: number;
  /** The cron expression of the schedule; undefined if it has an interval. */
  readonly cron: string | undefined;
  /** The name of the schedule. */
  readonly schedule: string;
  /** The event of the schedule. */
  readonly event: any;
  /** Makes this attempt the last one, also if it fails. */
  noRetry(): void;
}

/** What the handler queue returns: nothing, or the messages to retry, as consumers of Amazon SQS do. */
type BatchResult = void | { batchItemFailures: { itemIdentifier: string }[] | null };

interface MessageBatch<Body = any> {
  readonly queue: string;
  readonly messages: readonly Message<Body>[];
  ackAll(): void;
  retryAll(options?: { delaySeconds?: number; reason?: string }): void;
}

/** A job. The first call of ack or retry decides. Without one, the end of the handler does. */
interface Message<Body = any> {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: Body;
  /** The number of the attempt, from 1. */
  readonly attempts: number;
  ack(): void;
  /**
   * Fails the attempt: the next one begins after the delay, at most 43,200, or after the job's
   * backoff. The reason, at most 1,024 bytes, is in the errors of the job.
   */
  retry(options?: { delaySeconds?: number; reason?: string }): void;
}

/** The event of a function's HTTP endpoint, in version 2.0 of the format of AWS Lambda. */
interface HttpEvent {
  version: "2.0";
  routeKey: "$default";
  rawPath: string;
  /** The part of the URL path after the alias. */
  path: string;
  rawQueryString: string;
  queryStringParameters?: Record<string, string>;
  /** Names in lower case. */
  headers: Record<string, string>;
  cookies?: string[];
  requestContext: { http: { method: string; path: string; sourceIp: string; userAgent: string }; [more: string]: any };
  /** Text, or base64 for a body that is not UTF-8 or has a binary type. */
  body?: string;
  isBase64Encoded: boolean;
  /** The CloudEvent that the request carries. */
  cloudEvent?: { specversion: string; id: string; source: string; type: string; data?: any; data_base64?: string; [attribute: string]: any };
  /** The CloudEvents of a batch that the request carries. */
  cloudEvents?: { specversion: string; id: string; source: string; type: string; data?: any; data_base64?: string; [attribute: string]: any }[];
  /** The body as text. */
  text(): Promise<string>;
  /** The body, parsed. */
  json<T = any>(): Promise<T>;
  /** The fields of a form. */
  formData(): Promise<FormData>;
}

/** The response of an HTTP endpoint. `undefined` is answered with 204, any other value with 200 and the value as JSON. */
interface HttpResponse {
  statusCode: number;
  headers?: Record<string, string | string[]>;
  cookies?: string[];
  body?: string;
  isBase64Encoded?: boolean;
}

/** The event of a Cadence activity. */
interface ActivityEvent {
  type: "cadence.activity";
  cadence: {
    domain: string; tasklist: string; workflowId: string; runId: string; activityId: string; activityType: string;
    /** Cadence's number of the attempt, from 0; `attempt` of the context counts from 1. */
    attempt: number;
  };
  input: { json?: any; raw_base64: string };
}

/** The event of a destination: the outcome of an asynchronous invocation. */
interface OutcomeEvent {
  version: "1.0";
  timestamp: string;
  requestContext: {
    /** The id of the activation. */
    requestId: string; function: string; ref: string;
    /** The version that ran last; undefined if none did. */
    version?: number;
    condition: "Success" | "RetriesExhausted" | "EventAgeExceeded"; approximateInvokeCount: number;
  };
  requestPayload: any;
  responseContext: { statusCode: number; functionError?: string };
  responsePayload: any;
}

// The standard globals that the sandbox has.

declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
declare function setTimeout(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearTimeout(id?: number): void;
declare function setInterval(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearInterval(id?: number): void;
declare function setImmediate(f: (...args: any[]) => void, ...args: any[]): number;
declare function clearImmediate(id?: number): void;
declare const self: typeof globalThis;
declare function queueMicrotask(f: () => void): void;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function structuredClone<T>(value: T, options?: { transfer?: Transferable[] }): T;

declare const console: {
  assert(condition?: boolean, ...values: unknown[]): void;
  count(label?: string): void;
  clear(): void;
  countReset(label?: string): void;
  debug(...values: unknown[]): void;
  dir(value?: unknown, options?: unknown): void;
  dirxml(...values: unknown[]): void;
  error(...values: unknown[]): void;
  group(...values: unknown[]): void;
  groupCollapsed(...values: unknown[]): void;
  groupEnd(): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  table(rows?: unknown, columns?: readonly string[]): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
};

declare class Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  static readonly NONE: 0;
  static readonly CAPTURING_PHASE: 1;
  static readonly AT_TARGET: 2;
  static readonly BUBBLING_PHASE: 3;
  readonly NONE: 0;
  readonly CAPTURING_PHASE: 1;
  readonly AT_TARGET: 2;
  readonly BUBBLING_PHASE: 3;
  readonly type: string;
  readonly target: EventTarget | null;
  readonly srcElement: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly eventPhase: number;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  returnValue: boolean;
  cancelBubble: boolean;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
  initEvent(type: string, bubbles?: boolean, cancelable?: boolean): void;
}
interface Event { readonly isTrusted: boolean }

declare class CustomEvent<T = any> extends Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: T });
  readonly detail: T;
  initCustomEvent(type: string, bubbles?: boolean, cancelable?: boolean, detail?: T): void;
}

type EventListener = ((event: any) => void) | { handleEvent(event: any): void } | null;
interface EventListenerOptions { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal }

declare class EventTarget {
  constructor();
  addEventListener(type: string, listener: EventListener, options?: boolean | EventListenerOptions): void;
  removeEventListener(type: string, listener: EventListener, options?: boolean | { capture?: boolean }): void;
  dispatchEvent(event: Event): boolean;
}

declare class ErrorEvent extends Event {
  constructor(type: string, options?: { message?: string; filename?: string; lineno?: number; colno?: number; error?: any; cancelable?: boolean });
  readonly message: string;
  readonly filename: string;
  readonly lineno: number;
  readonly colno: number;
  readonly error: any;
}

declare class PromiseRejectionEvent extends Event {
  constructor(type: string, options: { promise: Promise<any>; reason?: any; cancelable?: boolean });
  readonly promise: Promise<any>;
  readonly reason: any;
}

/** The types of the platform: error, unhandledrejection, rejectionhandled. preventDefault() prevents the end of the activation. */
declare function addEventListener(type: string, listener: EventListener, options?: boolean | EventListenerOptions): void;
declare function removeEventListener(type: string, listener: EventListener, options?: boolean | { capture?: boolean }): void;
declare function dispatchEvent(event: Event): boolean;
/** Dispatches an ErrorEvent on the global object, and logs the error unless a listener prevents it. */
declare function reportError(error: any): void;
/** Returning true prevents the end of the activation. */
declare var onerror: ((message: any, file?: string, line?: number, column?: number, error?: any) => any) | null;
declare var onunhandledrejection: ((event: PromiseRejectionEvent) => any) | null;
declare var onrejectionhandled: ((event: PromiseRejectionEvent) => any) | null;

type Transferable = ArrayBuffer | MessagePort;

declare class MessageEvent<T = any> extends Event {
  constructor(type: string, options?: { data?: T; origin?: string; lastEventId?: string; source?: MessagePort | null; ports?: MessagePort[] });
  readonly data: T;
  readonly origin: string;
  readonly lastEventId: string;
  readonly source: MessagePort | null;
  readonly ports: readonly MessagePort[];
  initMessageEvent(type: string, bubbles?: boolean, cancelable?: boolean, data?: any, origin?: string, lastEventId?: string, source?: MessagePort | null, ports?: MessagePort[]): void;
}

/** Messages that are not delivered when the activation ends are dropped. */
declare class MessagePort extends EventTarget {
  private constructor();
  postMessage(message: any, options?: Transferable[] | { transfer?: Transferable[] }): void;
  start(): void;
  close(): void;
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onclose: ((event: Event) => void) | null;
}

declare class MessageChannel {
  constructor();
  readonly port1: MessagePort;
  readonly port2: MessagePort;
}

declare class CloseEvent extends Event {
  constructor(type: string, options?: EventInit & { code?: number; reason?: string; wasClean?: boolean });
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;
}

/** A client, for the hosts that fetch may reach. It ends with the activation that opened it. */
declare class WebSocket extends EventTarget {
  static readonly CONNECTING: 0;
  static readonly OPEN: 1;
  static readonly CLOSING: 2;
  static readonly CLOSED: 3;
  readonly CONNECTING: 0;
  readonly OPEN: 1;
  readonly CLOSING: 2;
  readonly CLOSED: 3;
  constructor(url: string | URL, protocols?: string | Iterable<string>);
  readonly url: string;
  readonly readyState: number;
  /** Bytes that were given to send and not taken by the network. */
  readonly bufferedAmount: number;
  readonly extensions: string;
  readonly protocol: string;
  binaryType: "blob" | "arraybuffer";
  /** At most 6 MiB. */
  send(data: string | Blob | ArrayBuffer | ArrayBufferView): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
}

/** Milliseconds from the start of the activation. */
declare class Performance extends EventTarget {
  private constructor();
  readonly timeOrigin: number;
  now(): number;
  toJSON(): any;
  /** The first 10,000 marks and measures of an activation are kept. */
  mark(name: string, options?: { detail?: any; startTime?: number }): PerformanceMark;
  /** Times are those of marks, or milliseconds. The end is now and the start 0, unless they are given. */
  measure(name: string, start?: string | { detail?: any; start?: string | number; duration?: number; end?: string | number }, end?: string): PerformanceMeasure;
  clearMarks(name?: string): void;
  clearMeasures(name?: string): void;
  /** In the order of their start times. */
  getEntries(): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
}
declare class PerformanceEntry {
  private constructor();
  readonly name: string;
  readonly entryType: string;
  readonly startTime: number;
  readonly duration: number;
  toJSON(): any;
}
declare class PerformanceMark extends PerformanceEntry {
  constructor(name: string, options?: { detail?: any; startTime?: number });
  /** A clone of what was given. */
  readonly detail: any;
}
declare class PerformanceMeasure extends PerformanceEntry {
  private constructor();
  readonly detail: any;
}
declare const performance: Performance;

declare class Navigator {
  private constructor();
  readonly userAgent: string;
}
declare const navigator: Navigator;

declare class Scheduler {
  private constructor();
  /** Resolves after the time, or rejects with the reason of the signal. */
  wait(ms: number, options?: { signal?: AbortSignal }): Promise<void>;
}
declare const scheduler: Scheduler;

type BlobPart = string | BufferSource | Blob;

declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: { type?: string; endings?: "transparent" | "native" });
  readonly size: number;
  readonly type: string;
  slice(start?: number, end?: number, type?: string): Blob;
  stream(): ReadableStream<Uint8Array>;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
}

declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: { type?: string; endings?: "transparent" | "native"; lastModified?: number });
  readonly name: string;
  readonly lastModified: number;
  readonly webkitRelativePath: string;
}

declare class FormData {
  constructor();
  append(name: string, value: string | Blob, filename?: string): void;
  delete(name: string): void;
  get(name: string): string | File | null;
  getAll(name: string): (string | File)[];
  has(name: string): boolean;
  set(name: string, value: string | Blob, filename?: string): void;
  forEach(f: (value: string | File, name: string, form: FormData) => void, self?: any): void;
  entries(): IterableIterator<[string, string | File]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string | File>;
  [Symbol.iterator](): IterableIterator<[string, string | File]>;
}

interface QueuingStrategy<T = any> { highWaterMark?: number; size?(chunk: T): number }
interface UnderlyingSource<T = any> {
  type?: "bytes";
  autoAllocateChunkSize?: number;
  start?(controller: any): any;
  pull?(controller: any): void | Promise<void>;
  cancel?(reason?: any): void | Promise<void>;
}
interface UnderlyingSink<T = any> {
  start?(controller: WritableStreamDefaultController): any;
  write?(chunk: T, controller: WritableStreamDefaultController): void | Promise<void>;
  close?(): void | Promise<void>;
  abort?(reason?: any): void | Promise<void>;
}
interface Transformer<I = any, O = any> {
  start?(controller: TransformStreamDefaultController<O>): any;
  transform?(chunk: I, controller: TransformStreamDefaultController<O>): void | Promise<void>;
  flush?(controller: TransformStreamDefaultController<O>): void | Promise<void>;
  cancel?(reason?: any): void | Promise<void>;
}
interface PipeOptions { preventAbort?: boolean; preventCancel?: boolean; preventClose?: boolean; signal?: AbortSignal }

declare class ReadableStream<T = any> {
  constructor(source?: UnderlyingSource<T>, strategy?: QueuingStrategy<T>);
  static from<T>(items: Iterable<T> | AsyncIterable<T>): ReadableStream<T>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(): ReadableStreamDefaultReader<T>;
  getReader(options: { mode: "byob" }): ReadableStreamBYOBReader;
  pipeThrough<O>(transform: { readable: ReadableStream<O>; writable: WritableStream<T> }, options?: PipeOptions): ReadableStream<O>;
  pipeTo(destination: WritableStream<T>, options?: PipeOptions): Promise<void>;
  tee(): [ReadableStream<T>, ReadableStream<T>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<T>;
  [Symbol.asyncIterator](options?: { preventCancel?: boolean }): AsyncIterableIterator<T>;
}

declare class ReadableStreamDefaultReader<T = any> {
  constructor(stream: ReadableStream<T>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read(): Promise<{ done: false; value: T } | { done: true; value?: undefined }>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBReader {
  constructor(stream: ReadableStream);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read<V extends ArrayBufferView>(view: V, options?: { min?: number }): Promise<{ done: boolean; value: V | undefined }>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBRequest {
  private constructor();
  readonly view: Uint8Array | null;
  respond(bytesWritten: number): void;
  respondWithNewView(view: ArrayBufferView): void;
}

declare class ReadableStreamDefaultController<T = any> {
  private constructor();
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk?: T): void;
  error(reason?: any): void;
}

declare class ReadableByteStreamController {
  private constructor();
  readonly byobRequest: ReadableStreamBYOBRequest | null;
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk: ArrayBufferView): void;
  error(reason?: any): void;
}

declare class WritableStream<T = any> {
  constructor(sink?: UnderlyingSink<T>, strategy?: QueuingStrategy<T>);
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamDefaultWriter<T>;
}

declare class WritableStreamDefaultWriter<T = any> {
  constructor(stream: WritableStream<T>);
  readonly closed: Promise<void>;
  readonly desiredSize: number | null;
  readonly ready: Promise<void>;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  releaseLock(): void;
  write(chunk?: T): Promise<void>;
}

declare class WritableStreamDefaultController {
  private constructor();
  readonly signal: AbortSignal;
  error(reason?: any): void;
}

declare class TransformStream<I = any, O = any> {
  constructor(transformer?: Transformer<I, O>, writableStrategy?: QueuingStrategy<I>, readableStrategy?: QueuingStrategy<O>);
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}

declare class TransformStreamDefaultController<O = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk?: O): void;
  error(reason?: any): void;
  terminate(): void;
}

declare class CountQueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk?: any) => number;
}

declare class ByteLengthQueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk: ArrayBufferView) => number;
}

declare class TextEncoderStream {
  constructor();
  readonly encoding: string;
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<string>;
}

declare class TextDecoderStream {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<BufferSource>;
}

type CompressionFormat = "gzip" | "deflate" | "deflate-raw";

declare class CompressionStream {
  constructor(format: CompressionFormat);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<BufferSource>;
}

/** The data must end with the compressed data: less or more of it is a TypeError. */
declare class DecompressionStream {
  constructor(format: CompressionFormat);
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<BufferSource>;
}

type BufferSource = ArrayBuffer | ArrayBufferView;
/** An AsyncIterable is a stream, or yields bytes or text. A Request with one requires duplex: "half". */
type BodyInit = string | BufferSource | URLSearchParams | Blob | FormData | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;
type HeadersInit = Headers | [string, string][] | Record<string, string>;

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  /** For a body that is a stream. It is read to its end before the request is sent. */
  duplex?: "half";
  redirect?: "follow" | "manual" | "error";
  signal?: AbortSignal | null;
  /** Options of browsers. They are kept and have no effect. */
  mode?: "cors" | "same-origin" | "no-cors";
  credentials?: "omit" | "same-origin" | "include";
  cache?: "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached";
  referrer?: string;
  referrerPolicy?: string;
  integrity?: string;
  keepalive?: boolean;
}

interface Body {
  /** The body as a stream, of one chunk unless the function made it of another; null where there is none. */
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  blob(): Promise<Blob>;
  /** Parses a multipart or URL-encoded body as FormData. */
  formData(): Promise<FormData>;
}

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(f: (value: string, name: string, headers: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface Request extends Body {}
declare class Request {
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly redirect: "follow" | "manual" | "error";
  readonly signal: AbortSignal;
  readonly destination: "";
  readonly referrer: string;
  readonly referrerPolicy: string;
  readonly mode: "cors" | "same-origin" | "no-cors";
  readonly credentials: "omit" | "same-origin" | "include";
  readonly cache: string;
  readonly integrity: string;
  readonly keepalive: boolean;
  readonly isReloadNavigation: false;
  readonly isHistoryNavigation: false;
  readonly duplex: "half";
  clone(): Request;
}

interface Response extends Body {}
declare class Response {
  constructor(body?: BodyInit | null, init?: { status?: number; statusText?: string; headers?: HeadersInit });
  static json(value: unknown, init?: { status?: number; statusText?: string; headers?: HeadersInit }): Response;
  static error(): Response;
  static redirect(url: string | URL, status?: number): Response;
  readonly status: number;
  readonly ok: boolean;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: string;
  readonly headers: Headers;
  clone(): Response;
}

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams {
  constructor(init?: string | [string, string][] | Record<string, string> | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(f: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** The patterns of the components of a URL, or their values; baseURL completes them. */
interface URLPatternInit {
  protocol?: string;
  username?: string;
  password?: string;
  hostname?: string;
  port?: string;
  pathname?: string;
  search?: string;
  hash?: string;
  baseURL?: string;
}

interface URLPatternComponentResult {
  input: string;
  groups: Record<string, string | undefined>;
}

interface URLPatternResult {
  inputs: (string | URLPatternInit)[];
  protocol: URLPatternComponentResult;
  username: URLPatternComponentResult;
  password: URLPatternComponentResult;
  hostname: URLPatternComponentResult;
  port: URLPatternComponentResult;
  pathname: URLPatternComponentResult;
  search: URLPatternComponentResult;
  hash: URLPatternComponentResult;
}

declare class URLPattern {
  constructor(input: string | URLPatternInit, baseURL: string, options?: { ignoreCase?: boolean });
  constructor(input?: string | URLPatternInit, options?: { ignoreCase?: boolean });
  test(input?: string | URLPatternInit, baseURL?: string): boolean;
  exec(input?: string | URLPatternInit, baseURL?: string): URLPatternResult | null;
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hostname: string;
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
  readonly hasRegExpGroups: boolean;
}

declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: AbortSignal[]): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: any) => void) | null;
  throwIfAborted(): void;
}

declare class AbortController {
  constructor();
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

declare class TextEncoder {
  constructor();
  readonly encoding: string;
  encode(text?: string): Uint8Array;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: BufferSource, options?: { stream?: boolean }): string;
}

declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

declare class CryptoKey {
  private constructor();
  readonly type: string;
  readonly extractable: boolean;
  readonly algorithm: any;
  readonly usages: string[];
}

type CryptoAlgorithm = string | { name: string; [parameter: string]: any };
type CryptoUsage = "encrypt" | "decrypt" | "sign" | "verify" | "deriveKey" | "deriveBits" | "wrapKey" | "unwrapKey";
type CryptoFormat = "raw" | "spki" | "pkcs8" | "jwk";

declare class Crypto {
  private constructor();
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(into: T): T;
  /**
   * SHA-1 to SHA-512, HMAC, AES-GCM, AES-CBC, AES-CTR, AES-KW, ECDSA, ECDH, Ed25519, X25519,
   * RSASSA-PKCS1-v1_5, RSA-PSS, RSA-OAEP, PBKDF2, HKDF.
   */
  readonly subtle: SubtleCrypto;
}

declare class SubtleCrypto {
  private constructor();
  digest(algorithm: CryptoAlgorithm, data: BufferSource): Promise<ArrayBuffer>;
  /** A CryptoKey, or {publicKey, privateKey}. */
  generateKey(algorithm: CryptoAlgorithm, extractable: boolean, usages: CryptoUsage[]): Promise<any>;
  importKey(format: CryptoFormat, key: BufferSource | object, algorithm: CryptoAlgorithm, extractable: boolean, usages: CryptoUsage[]): Promise<CryptoKey>;
  /** An ArrayBuffer, or a JSON Web Key for the format jwk. */
  exportKey(format: "jwk", key: CryptoKey): Promise<any>;
  exportKey(format: CryptoFormat, key: CryptoKey): Promise<ArrayBuffer>;
  sign(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  verify(algorithm: CryptoAlgorithm, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  encrypt(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  decrypt(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  deriveBits(algorithm: CryptoAlgorithm, key: CryptoKey, length?: number | null): Promise<ArrayBuffer>;
  deriveKey(algorithm: CryptoAlgorithm, key: CryptoKey, derived: CryptoAlgorithm, extractable: boolean, usages: CryptoUsage[]): Promise<CryptoKey>;
  wrapKey(format: CryptoFormat, key: CryptoKey, wrapping: CryptoKey, algorithm: CryptoAlgorithm): Promise<ArrayBuffer>;
  unwrapKey(format: CryptoFormat, wrapped: BufferSource, unwrapping: CryptoKey, algorithm: CryptoAlgorithm, key: CryptoAlgorithm, extractable: boolean, usages: CryptoUsage[]): Promise<CryptoKey>;
}
declare const crypto: Crypto;

// Files that a function imports and that are no modules: text, and bytes. sous fn deploy
// bundles them.

declare module "*.txt" { const text: string; export default text; }
declare module "*.html" { const text: string; export default text; }
declare module "*.md" { const text: string; export default text; }
declare module "*.css" { const text: string; export default text; }
declare module "*.sql" { const text: string; export default text; }
declare module "*.wasm" { const module: WebAssembly.Module; export default module; }

declare namespace WebAssembly {
  type ValueType = "i32" | "i64" | "f32" | "f64" | "externref" | "anyfunc" | "funcref";
  type Kind = "function" | "table" | "memory" | "global";
  type Imports = Record<string, Record<string, unknown>>;
  class Module {
    constructor(bytes: BufferSource);
    static exports(module: Module): { name: string; kind: Kind }[];
    static imports(module: Module): { module: string; name: string; kind: Kind }[];
    static customSections(module: Module, name: string): ArrayBuffer[];
  }
  class Instance { constructor(module: Module, imports?: Imports); readonly exports: Record<string, any>; }
  class Memory { constructor(descriptor: { initial: number; maximum?: number }); grow(pages: number): number; readonly buffer: ArrayBuffer; }
  class Table {
    constructor(descriptor: { element: "anyfunc" | "externref"; initial: number; maximum?: number }, value?: unknown);
    grow(delta: number, value?: unknown): number;
    get(index: number): any;
    set(index: number, value?: unknown): void;
    readonly length: number;
  }
  class Global { constructor(descriptor: { value: ValueType; mutable?: boolean }, value?: unknown); value: any; valueOf(): any; }
  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}
  function validate(bytes: BufferSource): boolean;
  function compile(bytes: BufferSource): Promise<Module>;
  function instantiate(bytes: BufferSource, imports?: Imports): Promise<{ module: Module; instance: Instance }>;
  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
  function compileStreaming(source: Response | Promise<Response>): Promise<Module>;
  function instantiateStreaming(source: Response | Promise<Response>, imports?: Imports): Promise<{ module: Module; instance: Instance }>;
}
