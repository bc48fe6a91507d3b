// What keeps views current: one stream of the tenant's events for each tab, and reads again while the
// page is visible and used. A console that is left alone reads nothing.
import { effect, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { can, Failure, Lost, reachable, readSession, send, session } from "./http.ts";
import type { Schemas } from "./http.ts";
import { tenant } from "./router.ts";
import { messages } from "./stream.ts";

const pollEvery = 5_000;
const idleAfter = 60_000;
const settle = 300; // events that come together cause one read

// state tells how current the views are.
export const state = signal<"live" | "idle">("live");

// now makes relative times move.
export const now = signal(Date.now());

const listeners = new Set<(event: Schemas["Event"] | null) => void>(); // null: anything may have changed
const notify = (event: Schemas["Event"] | null) => listeners.forEach((listen) => listen(event));

let used = Date.now();
for (const name of ["pointerdown", "pointermove", "keydown", "focus", "visibilitychange"]) {
  addEventListener(
    name,
    () => {
      if (document.visibilityState !== "visible") return;
      const woke = Date.now() - used > idleAfter;
      used = Date.now();
      state.value = "live";
      if (woke) notify(null);
    },
    { passive: true, capture: true },
  );
}

setInterval(() => {
  if (document.visibilityState !== "visible") return;
  now.value = Date.now();
  if (Date.now() - used > idleAfter) state.value = "idle";
}, 1_000);

// After an outage the session is examined first: the server may be another one.
let retry = 0;
effect(() => {
  if (reachable.value) {
    retry = 0;
    return;
  }
  const wait = Math.min(500 * 2 ** retry++, 5_000);
  const again = () =>
    readSession().then(
      () => notify(null),
      () => setTimeout(again, Math.min(500 * 2 ** retry++, 5_000)),
    );
  setTimeout(again, wait);
});

// The stream of events. It ends with the tenant, and is opened again after an outage.
let stream: AbortController | undefined;
effect(() => {
  const of = tenant.value;
  const open = session.value?.signed_in && reachable.value && of && can("cs:job:read");
  stream?.abort();
  if (!open) return;
  stream = new AbortController();
  void follow(of, stream.signal);
});

async function follow(of: string, signal: AbortSignal): Promise<void> {
  let last = "";
  for (let failures = 0; !signal.aborted; ) {
    try {
      const answer = await send(`api/v1/tenants/${of}/events:follow`, {
        headers: { accept: "text/event-stream", ...(last && { "last-event-id": last }) },
        signal,
      });
      failures = 0;
      for await (const message of messages(answer.body!)) {
        if (message.id) last = message.id;
        if (message.data) notify(message.name === "gap" ? null : (JSON.parse(message.data) as Schemas["Event"]));
      }
    } catch (error) {
      if (signal.aborted || error instanceof Lost) return;
      if (error instanceof Failure && (error.status === 401 || error.status === 403)) return;
      failures++;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(1_000 * 2 ** failures, 30_000)));
  }
}

export type Loaded<T> = { data?: T; error?: Error; loading: boolean; reload: () => void };

// useLoad reads for a view when key changes, when an event is one that matters to it, and, with
// poll, from time to time.
export function useLoad<T>(
  key: string,
  read: (signal: AbortSignal) => Promise<T>,
  options: { poll?: boolean; on?: (event: Schemas["Event"]) => boolean } = {},
): Loaded<T> {
  const [at, setAt] = useState<{ key: string; data?: T; error?: Error }>({ key: "" });
  const run = useRef(() => {});
  useEffect(() => {
    if (!key) return; // there is nothing to read
    let control = new AbortController();
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      control.abort();
      control = new AbortController();
      const signal = control.signal;
      try {
        const data = await read(signal);
        if (!ended && !signal.aborted) setAt({ key, data });
      } catch (error) {
        if (!ended && !signal.aborted) setAt((before) => ({ key, data: before.key === key ? before.data : undefined, error: error as Error }));
      }
    };
    run.current = load;
    const listen = (event: Schemas["Event"] | null) => {
      if (event && !options.on?.(event)) return;
      clearTimeout(timer);
      timer = setTimeout(load, event ? settle : 0);
    };
    listeners.add(listen);
    const poll = options.poll
      ? setInterval(() => {
          if (document.visibilityState === "visible" && reachable.value && Date.now() - used < idleAfter) void load();
        }, pollEvery)
      : undefined;
    void load();
    return () => {
      ended = true;
      control.abort();
      clearTimeout(timer);
      clearInterval(poll);
      listeners.delete(listen);
    };
  }, [key]);
  const current = at.key === key;
  return { data: current ? at.data : undefined, error: current ? at.error : undefined, loading: !current, reload: () => run.current() };
}

// changed makes every view read again, after an action.
export const changed = () => notify(null);
