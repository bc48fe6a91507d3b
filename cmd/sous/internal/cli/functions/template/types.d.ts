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
  /** Cadence: activities, and workflows. Capability for workflows: `cadence`. */
  readonly cadence: CsCadence;
  /** Secrets of the namespace. Capability: `secrets`. */
  readonly secrets: CsSecrets;
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
  /** Jobs that target the function, one in each batch. */
  queue?(batch: MessageBatch, env: Cs["env"], ctx: Context): void | Promise<void>;
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

interface MessageBatch<Body = any> {
  readonly queue: string;
  readonly messages: readonly Message<Body>[];
  ackAll(): void;
  retryAll(options?: { delaySeconds?: number }): void;
}

/** A job. The first call of ack or retry decides. Without one, the end of the handler does. */
interface Message<Body = any> {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: Body;
  /** The number of the attempt, from 1. */
  readonly attempts: number;
  ack(): void;
  /** Fails the attempt: the next one begins after the delay, at most 43,200, or after the job's backoff. */
  retry(options?: { delaySeconds?: number }): void;
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
declare function structuredClone<T>(value: T): T;

declare const console: {
  assert(condition?: boolean, ...values: unknown[]): void;
  count(label?: string): void;
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

declare const performance: { now(): number; readonly timeOrigin: number };

/** The body of a Request or a Response. */
interface BodyStream extends AsyncIterable<Uint8Array> {
  readonly locked: boolean;
  cancel(): Promise<void>;
  getReader(): {
    cancel(): Promise<void>;
    read(): Promise<{ done: boolean; value?: Uint8Array }>;
    releaseLock(): void;
  };
}

type BufferSource = ArrayBuffer | ArrayBufferView;
/** An AsyncIterable is a stream, or yields bytes or text. A Request with one requires duplex: "half". */
type BodyInit = string | BufferSource | URLSearchParams | BodyStream | AsyncIterable<Uint8Array | string>;
type HeadersInit = Headers | [string, string][] | Record<string, string>;

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  /** For a body that is a stream. It is read to its end before the request is sent. */
  duplex?: "half";
  redirect?: "follow" | "manual" | "error";
  signal?: AbortSignal | null;
}

interface Body {
  /** The body as a stream, of one chunk unless the function made it of another; null where there is none. */
  readonly body: BodyStream | null;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json(): Promise<any>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  blob(): Promise<unknown>;
  /** Parses a multipart or URL-encoded body as FormData. */
  formData(): Promise<any>;
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

type CryptoAlgorithm = string | { name: string; [parameter: string]: any };
type CryptoUsage = "encrypt" | "decrypt" | "sign" | "verify" | "deriveKey" | "deriveBits" | "wrapKey" | "unwrapKey";
type CryptoFormat = "raw" | "spki" | "pkcs8" | "jwk";

declare const crypto: {
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(into: T): T;
  /**
   * SHA-1 to SHA-512, HMAC, AES-GCM, AES-CBC, AES-CTR, AES-KW, ECDSA, ECDH, Ed25519, X25519,
   * RSASSA-PKCS1-v1_5, RSA-PSS, RSA-OAEP, PBKDF2, HKDF.
   */
  readonly subtle: {
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
  };
};

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
}
