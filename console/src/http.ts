// Requests to the API. They go to api/v1/… below the console, with the cookie of the session, which
// scripts cannot read, and its token.
import { signal } from "@preact/signals";
import type { components } from "./api.gen.ts";
import { text } from "./text.ts";

export type Schemas = components["schemas"];
export type Identity = Schemas["Identity"];
export type Page<T> = { items: T[] | null; next_cursor: string | null };

// The console's root, behind whatever prefix a proxy adds: the scripts are in its folder assets.
export const base = new URL("../", import.meta.url);

export type Session = {
  signed_in: boolean;
  auth: "keys" | "off";
  reason?: string;
  identity?: Identity;
  actions?: string[];
  token?: string;
};

export const session = signal<Session | null>(null); // null until it is known

// reachable is false while the server does not answer.
export const reachable = signal(true);

// A Failure is an answer that is no success, as the server explains it.
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly requestID: string,
    readonly fields: { path: string; message: string }[] = [],
  ) {
    super(detail);
  }
}

// A Lost request got no answer: the server is down, or the network.
export class Lost extends Error {
  constructor() {
    super(text.lost);
  }
}

export type Options = { method?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal };

export async function send(path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  if (session.value?.token) headers["x-sous-token"] = session.value.token;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(new URL(path, base), {
      method: options.method ?? "GET",
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
    });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    reachable.value = false;
    throw new Lost();
  }
  // A proxy answers for a server that is down.
  if (answer.status === 502 || answer.status === 504) {
    reachable.value = false;
    throw new Lost();
  }
  reachable.value = true;
  if (answer.ok) return answer;
  const failure = await explained(answer);
  if (answer.status === 401 && session.value?.signed_in) session.value = { signed_in: false, auth: "keys", reason: failure.message };
  throw failure;
}

async function explained(answer: Response): Promise<Failure> {
  try {
    const p = (await answer.json()) as Schemas["Problem"];
    const fields = (p.errors ?? []).map((f) => ({ path: f.path, message: f.message }));
    return new Failure(answer.status, p.code, p.detail, p.request_id, fields);
  } catch {
    return new Failure(answer.status, "", `${answer.status} ${answer.statusText}`, answer.headers.get("x-request-id") ?? "");
  }
}

export async function call<T>(path: string, options?: Options): Promise<T> {
  const answer = await send("api/v1/" + path, options);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

// segment encodes a name for a path.
export const segment = encodeURIComponent;

// query returns the parameters that have a value, with the question mark.
export function query(parameters: Record<string, string | number | undefined | null>): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined && value !== null && value !== "") all.set(name, String(value));
  const joined = all.toString();
  return joined && "?" + joined;
}

export async function readSession(): Promise<void> {
  session.value = (await (await send("api/session")).json()) as Session;
}

export async function signIn(key: string): Promise<void> {
  session.value = (await (await send("api/session", { method: "POST", body: { key } })).json()) as Session;
}

export async function signOut(): Promise<void> {
  await send("api/session", { method: "DELETE" });
  session.value = { signed_in: false, auth: "keys" };
}

// can reports whether the roles of the caller grant an action. The server decides; this only hides
// what it would refuse.
export function can(action: string): boolean {
  return (session.value?.actions ?? []).some((a) => (a.endsWith("*") ? action.startsWith(a.slice(0, -1)) : a === action));
}
