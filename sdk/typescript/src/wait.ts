import { setTimeout as sleep } from "node:timers/promises";

/** Waits until the time is over or the signal is aborted. It does not throw. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    // The caller examines the signal.
  }
}

/** Delays that grow, with full jitter between a floor and a bound that doubles. */
export class Backoff {
  #bound: number;

  constructor(
    private readonly first: number,
    private readonly most: number,
    /** The least delay in milliseconds: no loop is busy, however often it fails. */
    private readonly floor = 20,
    private readonly random: () => number = Math.random,
  ) {
    this.#bound = first;
  }

  reset(): void {
    this.#bound = this.first;
  }

  /** Returns the next delay in milliseconds: random from the floor to the bound. */
  next(): number {
    const delay = this.floor + this.random() * Math.max(0, this.#bound - this.floor);
    this.#bound = Math.min(2 * this.#bound, this.most);
    return delay;
  }
}

/** Wakes one waiter. A notification without a waiter is kept for the next one. */
export class Notice {
  #set = false;
  #wake: (() => void) | undefined;

  notify(): void {
    this.#set = true;
    this.#wake?.();
  }

  /** Waits for a notification, or until the signal is aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    if (!this.#set && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          signal.removeEventListener("abort", wake);
          resolve();
        };
        this.#wake = wake;
        signal.addEventListener("abort", wake);
      });
    }
    this.#set = false;
    this.#wake = undefined;
  }
}

/** Calls `call` with a signal that is aborted with `signal`, and after `ms`. */
export async function bounded<T>(ms: number, signal: AbortSignal | undefined, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const bound = new AbortController();
  const forward = () => bound.abort(signal?.reason);
  const timer = setTimeout(() => bound.abort(new DOMException(`there was no answer within ${Math.ceil(ms)} ms`, "TimeoutError")), ms);
  if (signal?.aborted) {
    forward();
  }
  signal?.addEventListener("abort", forward);
  try {
    return await call(bound.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", forward);
  }
}
