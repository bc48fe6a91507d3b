"""A worker for the tests in Go (sdk/sdk_test.go). It prints its events as lines of JSON."""

import argparse
import asyncio
import json
import signal
import sys
from typing import Any

from code_sous import ApiError, Client, Event, Fatal, Job, JobOptions, ProviderError, RetryAfter, Snooze, Worker


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def on_event(event: Event) -> None:
    fields: dict[str, Any] = {}
    if event.job is not None:
        fields |= {"id": event.job.id, "attempt": event.job.attempt}
    if event.reason is not None:
        fields["reason"] = event.reason
    if event.error is not None:
        fields["text"] = str(event.error)
    say(event.kind, **fields)


async def work(client: Client, job: Job) -> object:
    """Handles a job as the kind of its payload says."""
    ms = job.payload.get("ms", 0)
    match job.payload["kind"]:
        case "slow":
            job.progress(1, 2, "half-way \U0001f600")
            await asyncio.sleep(ms / 1000)
            return {"slept": ms}
        case "flaky":
            if job.attempt == 1:
                raise RetryAfter(0.01, "the first attempt fails")
            return {"attempt": job.attempt}
        case "throws":
            raise TypeError("always fails")
        case "fatal":
            raise Fatal("no such address")
        case "checkpoint":
            if job.attempt == 1:
                job.keep({"page": 7})
                raise RetryAfter(0.01, "stopped at page 7")
            return job.checkpoint
        case "snooze":
            if job.checkpoint is None:
                job.keep("snoozed")
                raise Snooze(0.01)
            return {"attempt": job.attempt}
        case "provider":
            if job.provider == "main":
                raise ProviderError("overloaded", "529", 60)
            return {"provider": job.provider, "model": job.model, "attempt": job.attempt}
        case "continue":
            part = job.checkpoint or 0
            if part < 2:
                job.keep(part + 1)
                job.continue_()
                return None
            return {"parts": part}
        case "hold":
            if job.checkpoint is None:
                job.keep("asked")
                job.hold("needs a look")
                return None
            return {"approved": True}
        case "enqueue":
            added = await client.enqueue("orders", {"kind": "echo"}, JobOptions(tags={"by": job.id}, unique_key=job.id))
            return {"id": added.id, "state": added.state, "duplicate": added.duplicate}
    await asyncio.sleep(ms / 1000)
    return job.payload


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--transport", default="stream")
    parser.add_argument("--concurrency", type=int, default=10)
    parser.add_argument("--lease", type=int, default=30_000, help="milliseconds")
    args = parser.parse_args()
    async with Client(args.url, tenant=args.tenant) as client:
        worker = Worker(client, concurrency=args.concurrency, lease=args.lease / 1000, transport=args.transport, on_event=on_event)

        @worker.handler("orders")
        async def orders(job: Job) -> object:
            return await work(client, job)

        try:
            await worker.run(signals=(signal.SIGTERM, signal.SIGINT))
        except ApiError as error:
            say("failed", text=str(error))
            return 1
        say("stopped")
        return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
