// The platform as functions see it, for editors and for tsc. Written by sous fn init;
// no part of the function. A newer sous may know more: sous fn init writes it anew into
// a folder that has none.

/** The platform: what a function reaches beside the language. */
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
   * Runs another function to its end and gives its result. Capability: `invoke`.
   * The callee has what is left of this activation's time; calls nest at most 8 deep.
   * @param name of a function of this namespace, or `namespace/name` of the tenant
   * @throws {InvokeError} where the function failed, with its `activationId`
   */
  invoke<T = any>(name: string, event?: unknown, options?: InvokeOptions): Promise<T>;
  /** The job that this activation is an attempt of: of asynchronous invocations. */
  readonly job: CsJob;
  /** Cadence: activities, and workflows. Capability for workflows: `cadence`. */
  readonly cadence: CsCadence;
  /** Secrets of the namespace. Capability: `secrets`. */
  readonly secrets: CsSecrets;
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
  /** The value under a key of 1 to 512 bytes, `undefined` where there is none. */
  get<T = any>(key: string): Promise<T | undefined>;
  /** Stores JSON of at most 64 KiB, for ever or for a time. */
  set(key: string, value: unknown, options?: { ttlSeconds?: number }): Promise<void>;
  /** Deletes, and says whether there was something. */
  del(key: string): Promise<boolean>;
}

/** Every operation rejects with a {@link StorageError}. */
interface CsStorage {
  /** Writes a document, in place of the one that is there. */
  put(request: DocumentPut): Promise<DocumentHead>;
  /** Reads a document. Rejects with `NOT_FOUND` where there is none. */
  get<T = any>(request: DocumentGet): Promise<StoredDocument<T>>;
  /** Lists documents by key, a page at a time. */
  list<T = any>(request: DocumentList): Promise<DocumentPage<T>>;
  /** Deletes a document; without `ifRevision`, one that is not there is none to delete. */
  delete(request: DocumentGet): Promise<void>;
  /** Writes up to 20 documents, all or none. */
  bulkPut(request: { namespace: string; items: DocumentItem[] }): Promise<{ items: DocumentResult[] }>;
  /** Does up to 20 checks and writes in one namespace, all or none. */
  transact(request: { namespace: string; operations: DocumentStep[] }): Promise<{ items: DocumentResult[] }>;
}

interface DocumentItem {
  /** 1 to 128 characters, no slash. */
  key: string;
  /** JSON of at most 64 KiB. */
  value: unknown;
  /** An object of at most 4 KiB, by whose members lists can be filtered. */
  metadata?: Record<string, unknown>;
  /** 60 to 2,592,000 (30 days); none for a document that stays. */
  ttlSeconds?: number | null;
  /** The revision that the document must have now; 0: there must be none. */
  ifRevision?: number | null;
}

interface DocumentPut extends DocumentItem {
  namespace: string;
}

interface DocumentGet {
  namespace: string;
  key: string;
  /** The revision that the document must have now. */
  ifRevision?: number | null;
}

interface DocumentList {
  namespace: string;
  /** `nextCursor` of the page before. */
  cursor?: string;
  /** 1 to 100; 25 where it is left out. */
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
  /** Counts the key's writes, from 1. */
  revision: number;
  /** RFC 3339, `null` for a document that stays. */
  ttlExpiresAt: string | null;
  createdAt: string;
  updatedAt: string;
}

interface StoredDocument<T = any> extends DocumentHead {
  value: T;
  metadata?: Record<string, any>;
}

interface DocumentPage<T = any> {
  /** `value` and `metadata` where they were asked for. */
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
  /** The HTTP status that the REST API has for it. */
  status: number;
  /** Which fields are wrong. */
  errors?: { path: string; message: string }[];
  /** Which of several items failed, and why. */
  items?: { index: number; code: string; message?: string }[];
  /** Which quota was met. */
  quota?: { scope: "namespace" | "tenant"; unit: "records" | "bytes"; limit: number; used: number };
}

interface CsHttp {
  /** Is the global `fetch`. */
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
  /** When it may begin: after a while, or (not both) at a time. */
  delaySeconds?: number;
  /** Milliseconds since 1970. */
  runAtMs?: number;
  /** What has not begun by then is dead. Milliseconds since 1970. */
  expireAtMs?: number;
  /** While a job with this key has not ended, there is no second one. */
  uniqueKey?: string;
  /** How long the key is held at most: a day, up to 30. */
  uniqueTtlSeconds?: number;
  /** 4, up to 1,000. */
  maxAttempts?: number;
  backoff?: "none" | "fixed" | "linear" | "exponential";
  baseDelayMs?: number;
  maxDelayMs?: number;
  jitter?: boolean;
  tags?: Record<string, string>;
  /** It waits for somebody's approval. */
  hold?: boolean;
  /** A JSON Schema that the job's result must keep. */
  resultSchema?: object;
}

interface EnqueueOptions extends JobOptions {
  /** A repeat with this key within a day gets the same job. */
  idempotencyKey?: string;
  /** Jobs of this namespace that must have completed. */
  dependsOn?: string[];
  onDependencyFailure?: "fail" | "continue" | "hold";
  batchId?: string;
  /** What follows the job. */
  chain?: { steps?: JobStep[]; onFailure?: JobStep; onExit?: JobStep };
}

interface JobStep extends JobOptions {
  /** The queue of the job before it, where it is left out. */
  queue?: string;
  payload?: unknown;
}

interface InvokeOptions {
  /** `prod`, where neither is given. */
  alias?: string;
  version?: number;
}

interface InvokeError extends CsError {
  /** The activation that failed; none where nothing ran. */
  activationId?: string;
  status?: "error" | "timeout" | "cancelled";
  /** What the function failed with; `code` is its own error's. */
  cause?: { type: string; message: string; code?: string };
}

/** Outside of a job its properties are undefined and its methods reject. */
interface CsJob {
  readonly id: string | undefined;
  readonly queue: string | undefined;
  /** Counts the attempts from 1. */
  readonly attempt: number | undefined;
  readonly maxAttempts: number | undefined;
  /** Tells how far the job is: a share of 100, or counts. At most two a second are sent. */
  progress(done: number | { current: number; total?: number; message?: string }): Promise<void>;
  /** Keeps JSON of at most 256 KiB for the next attempt. It is sent within a second, and at the attempt's end. */
  checkpoint(value: unknown): Promise<void>;
  /** What the attempts before kept last, `undefined` where they kept nothing. */
  lastCheckpoint<T = any>(): T | undefined;
}

interface CsCadence {
  /** Records an activity's progress: JSON of at most 64 KiB. */
  heartbeat(details?: unknown): Promise<void>;
  /** What the attempt before recorded last. */
  lastHeartbeat<T = any>(): T | undefined;
  /** Starts a workflow. */
  start(workflowType: string, options: WorkflowStart): Promise<{ workflowId: string; runId: string }>;
  /** Signals a workflow that runs. */
  signal(workflowType: string, options: WorkflowSignal): Promise<void>;
}

interface WorkflowStart {
  domain: string;
  tasklist: string;
  /** A new one, where it is left out. */
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
  /** The run under way, where it is left out. */
  runId?: string;
  signal: string;
  input?: unknown;
}

interface CsSecrets {
  /** A secret's value of now. */
  get(name: string): Promise<string>;
}

/** The handler's second argument. */
interface Context {
  readonly activation_id: string;
  /** When the activation is interrupted, in milliseconds since 1970. */
  readonly deadline_ms: number;
  readonly tenant: string;
  readonly namespace: string;
  readonly function: string;
  readonly version: number;
  readonly ref: { alias?: string; version: number };
  /** What called: `source` depends on `type`. */
  readonly trigger: { type: "http" | "api" | "schedule" | "cadence" | "queue"; source?: any };
  /** Who called first. */
  readonly principal: { sub: string; roles: string[] };
  /** Counts from 1. */
  readonly attempt: number;
  readonly request_id: string;
  /** The time that is left, in milliseconds. */
  remainingMs(): number;
}

/** A function. Its result is JSON of at most 6 MiB. */
type Handler<Event = any, Result = any> = (event: Event, ctx: Context) => Result | Promise<Result>;

/** The event of a function's HTTP endpoint: version 2.0 of AWS Lambda's. */
interface HttpEvent {
  version: "2.0";
  routeKey: "$default";
  rawPath: string;
  /** What follows the alias in the URL. */
  path: string;
  rawQueryString: string;
  queryStringParameters?: Record<string, string>;
  /** Names in lower case. */
  headers: Record<string, string>;
  cookies?: string[];
  requestContext: { http: { method: string; path: string; sourceIp: string; userAgent: string }; [more: string]: any };
  /** In base64. */
  body?: string;
  isBase64Encoded: boolean;
}

/** What an HTTP endpoint answers. `undefined` is 204, and any other value 200 with it as JSON. */
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
    domain: string; tasklist: string; workflow_id: string; run_id: string; activity_id: string; activity_type: string; attempt: number;
  };
  input: { json?: any; raw_base64: string };
}

/** The event of a destination: the outcome of an asynchronous invocation. */
interface OutcomeEvent {
  version: "1.0";
  timestamp: string;
  requestContext: {
    requestId: string; function: string; ref: string; version: number;
    condition: "Success" | "RetriesExhausted" | "EventAgeExceeded"; approximateInvokeCount: number;
  };
  requestPayload: any;
  responseContext: { statusCode: number; functionError?: string };
  responsePayload: any;
}

// The standard globals, as far as the sandbox has them.

declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
declare function setTimeout(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearTimeout(id?: number): void;
declare function setInterval(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearInterval(id?: number): void;
declare function setImmediate(f: (...args: any[]) => void, ...args: any[]): number;
declare function clearImmediate(id?: number): void;
declare function queueMicrotask(f: () => void): void;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function structuredClone<T>(value: T): T;

declare const console: {
  debug(...values: unknown[]): void;
  error(...values: unknown[]): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
};

declare const performance: { now(): number; readonly timeOrigin: number };

type BufferSource = ArrayBuffer | ArrayBufferView;
type BodyInit = string | BufferSource | URLSearchParams;
type HeadersInit = Headers | [string, string][] | Record<string, string>;

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "manual" | "error";
  signal?: AbortSignal | null;
}

interface Body {
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
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

declare class AbortSignal {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(ms: number): AbortSignal;
  static any(signals: AbortSignal[]): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: any) => void) | null;
  throwIfAborted(): void;
  addEventListener(type: "abort", f: (event: any) => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", f: (event: any) => void): void;
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

declare const crypto: {
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(into: T): T;
  readonly subtle: {
    /** SHA-1, SHA-256, SHA-384, SHA-512. */
    digest(algorithm: string | { name: string }, data: BufferSource): Promise<ArrayBuffer>;
    /** HMAC keys, raw. */
    importKey(format: "raw", key: BufferSource, algorithm: { name: "HMAC"; hash: string | { name: string } }, extractable: boolean, usages: ("sign" | "verify")[]): Promise<CryptoKey>;
    exportKey(format: "raw", key: CryptoKey): Promise<ArrayBuffer>;
    sign(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
    verify(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  };
};
