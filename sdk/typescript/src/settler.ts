import { ApiError } from "./errors.js";
import type { Settlement, Run } from "./job.js";
import { maxSettleJobs } from "./limits.js";
import type { Outcome, Source } from "./source.js";
import { Backoff, bounded, pause } from "./wait.js";

/** What a settler tells its worker. */
export interface SettlerEvents {
  /** The job is settled, or given up. */
  settled(run: Run): void;
  warning(error: Error): void;
}

/** Settles jobs in groups: those that arrive during a call are settled by the next one. A single job is settled at once. */
export class Settler {
  #waiting: Settlement[] = [];
  #working: Promise<void> | undefined;

  constructor(
    private readonly source: Source,
    private readonly workerId: string,
    private readonly leaseMs: number,
    private readonly life: AbortSignal,
    private readonly events: SettlerEvents,
  ) {}

  add(how: Settlement): void {
    this.#waiting.push(how);
    this.#working ??= this.#work();
  }

  /** Waits until all jobs are settled. */
  async flush(): Promise<void> {
    while (this.#working !== undefined) {
      await this.#working;
    }
  }

  async #work(): Promise<void> {
    await Promise.resolve(); // jobs that end in the same turn of the event loop are one group
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, maxSettleJobs);
      await Promise.all([this.#ack(group.filter((s) => s.ack !== undefined)), this.#fail(group.filter((s) => s.fail !== undefined))]);
    }
    this.#working = undefined;
  }

  async #ack(group: Settlement[]): Promise<void> {
    const refused = (how: Settlement, o: Outcome) => {
      if (o.code === "CS_JOB_LEASE_LOST" || o.code === "CS_JOB_NOT_FOUND") {
        this.#refused(how, o);
      } else {
        // The lease would otherwise expire as if the worker had died.
        this.#waiting.push(how.run.failed(new ApiError(o.code, `the ack was refused: ${o.message}`)));
      }
    };
    await this.#settle(group, refused, (signal) => this.source.ack(group.map((s) => s.ack!), signal));
  }

  async #fail(group: Settlement[]): Promise<void> {
    const beats = group.flatMap((s) => s.beat ?? []);
    await this.#settle(group, (how, o) => this.#refused(how, o), async (signal) => {
      if (beats.length > 0) {
        await this.source.heartbeat(this.workerId, beats, signal);
      }
      return this.source.fail(group.map((s) => s.fail!), signal);
    });
  }

  /** Repeats a call until it is answered, or until all leases must have expired. Repeats of a call of the same lease succeed. */
  async #settle(group: Settlement[], refused: (how: Settlement, o: Outcome) => void, call: (signal: AbortSignal) => Promise<Outcome[]>): Promise<void> {
    if (group.length === 0) {
      return;
    }
    const backoff = new Backoff(100, 5_000);
    const until = performance.now() + this.leaseMs;
    for (;;) {
      try {
        const outcomes = await bounded(this.leaseMs, this.life, call);
        if (outcomes.length !== group.length) {
          throw new Error(`got ${outcomes.length} outcomes for ${group.length} jobs`);
        }
        outcomes.forEach((o, i) => (o.ok ? this.events.settled(group[i]!.run) : refused(group[i]!, o)));
        return;
      } catch (error) {
        this.events.warning(new Error(`settle ${group.length} jobs: ${String(error)}`, { cause: error }));
        if (this.life.aborted || performance.now() > until || (error instanceof ApiError && error.permanent)) {
          break;
        }
      }
      await pause(backoff.next(), this.life);
    }
    group.forEach((how) => this.events.settled(how.run));
  }

  #refused(how: Settlement, o: Outcome): void {
    if (how.run.lost === undefined) {
      this.events.warning(new ApiError(o.code, `job ${o.id} was not settled: ${o.message}`));
    }
    this.events.settled(how.run);
  }
}
