"""The source of jobs that sends a request for each call."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from .limits import parts_of
from .requests import Exchange, Requests, dumps
from .source import Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome

# Bounds of one call in bytes, below those of the server.
MAX_ACK_BYTES = 7 << 20
MAX_FAIL_BYTES = 900 << 10
MAX_BEAT_BYTES = 7 << 20

LAST_JOBS_SECONDS = 2.0
"""How long a fetch that is cancelled waits for jobs that the server may just have leased."""

FETCH_GRACE = 10.0
SETTLE_SECONDS = 30.0
"""How long the server may be silent: beyond the wait of a fetch, and in other calls."""

Item = TypeVar("Item")


class HttpSource:
    """A source that sends a request for each call. Closing it does not close its Requests."""

    def __init__(self, requests: Requests, tenant: str, namespace: str) -> None:
        self._requests, self._namespace = requests, namespace
        self._path = f"/v1/tenants/{quote(tenant, safe='')}/jobs:"

    async def fetch(self, request: FetchRequest, stop: asyncio.Event) -> list[FetchedJob]:
        body = dumps({
            "namespace": self._namespace, "queues": request.queues, "worker_id": request.worker_id, "count": request.count,
            "lease_ms": request.lease_ms, "wait_ms": request.wait_ms, "hostname": request.hostname, "version": request.version,
        })
        exchange = Exchange()
        timeout = request.wait_ms / 1000 + FETCH_GRACE
        call = asyncio.create_task(self._requests.send("POST", self._path + "fetch", body, timeout=timeout, exchange=exchange))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((call, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                # Jobs that the server has leased by now arrive, and it releases those that it leases from now on.
                exchange.end_request()
                await asyncio.wait((call,), timeout=LAST_JOBS_SECONDS)
            return [to_job(j) for j in call.result()["jobs"]] if call.done() else []
        finally:
            for task in (call, stopped):
                task.cancel()
            await asyncio.gather(call, stopped, return_exceptions=True)

    async def ack(self, acks: Sequence[Ack]) -> list[Outcome]:
        def size(a: Ack) -> int:
            return len(a.result or b"") + len(a.checkpoint or b"") + 6 * len(a.hold)

        return await self._settle("ack", acks, MAX_ACK_BYTES, size, lambda part: b'{"acks":[' + b",".join(map(from_ack, part)) + b"]}")

    async def fail(self, fails: Sequence[Fail]) -> list[Outcome]:
        def size(f: Fail) -> int:
            return 6 * (len(f.error) + len(f.stack))

        return await self._settle("fail", fails, MAX_FAIL_BYTES, size, lambda part: dumps({"fails": [from_fail(f) for f in part]}))

    async def heartbeat(self, worker_id: str, beats: Sequence[Heartbeat]) -> list[Outcome]:
        def size(b: Heartbeat) -> int:
            return len(b.checkpoint or b"") + (6 * len(b.progress.message) if b.progress else 0)

        head = b'{"worker_id":' + dumps(worker_id) + b',"jobs":['
        return await self._settle("heartbeat", beats, MAX_BEAT_BYTES, size, lambda part: head + b",".join(map(from_heartbeat, part)) + b"]}")

    async def close(self) -> None:
        pass

    async def _settle(
        self, verb: str, items: Sequence[Item], most: int, size: Callable[[Item], int], body: Callable[[list[Item]], bytes]
    ) -> list[Outcome]:
        """Sends jobs in requests of bounded size, one after the other."""
        outcomes: list[Outcome] = []
        for part in parts_of(items, most, size):
            # The status is 409 if no job of the call could be settled.
            answer = await self._requests.send("POST", self._path + verb, body(part), timeout=SETTLE_SECONDS, accepted=(409,))
            outcomes.extend(
                Outcome(o.get("id", ""), o.get("ok", False), o.get("code", ""), o.get("message", ""), o.get("state", "")) for o in answer["jobs"]
            )
        return outcomes


def to_job(j: dict[str, Any]) -> FetchedJob:
    return FetchedJob(
        id=j["id"], namespace=j["namespace"], queue=j["queue"], payload=j["payload"], attempt=j["attempt"], max_attempts=j["max_attempts"],
        lease_epoch=j["lease_epoch"], lease_expires_ms=j["lease_expires_ms"], created_at_ms=j["created_at_ms"], checkpoint=j.get("checkpoint"),
        tags=j.get("tags", {}), parent_id=j.get("parent_id", ""), callback_of=j.get("callback_of", ""), provider=j.get("provider", ""), model=j.get("model", ""),
    )


def joined(fields: dict[str, Any], **encoded: bytes | None) -> bytes:
    """Returns a JSON object of fields, and of fields that are JSON already."""
    rest = b"".join(b"," + dumps(name) + b":" + text for name, text in encoded.items() if text is not None)
    return dumps(fields)[:-1] + rest + b"}"


def from_ack(a: Ack) -> bytes:
    return joined({"id": a.id, "lease_epoch": a.lease_epoch, "continue": a.continue_, "hold": a.hold}, result=a.result, checkpoint=a.checkpoint)


def from_fail(f: Fail) -> dict[str, Any]:
    fields = {
        "id": f.id, "lease_epoch": f.lease_epoch, "error": f.error, "stack": f.stack, "retry_after_ms": f.retry_after_ms,
        "snooze_ms": f.snooze_ms, "fatal": f.fatal, "provider_error": f.provider_error,
    }
    return {name: value for name, value in fields.items() if value is not None}


def from_heartbeat(b: Heartbeat) -> bytes:
    fields: dict[str, Any] = {"id": b.id, "lease_epoch": b.lease_epoch, "lease_ms": b.lease_ms}
    if b.progress is not None:
        fields["progress"] = {"current": b.progress.current, "total": b.progress.total, "message": b.progress.message}
    return joined(fields, checkpoint=b.checkpoint)
