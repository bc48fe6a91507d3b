"""Requests of the HTTP API, and the source of jobs that sends one for each call."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from .errors import ApiError, FieldError, UnreachableError
from .limits import parts_of
from .source import Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome

# Bounds of one call in bytes, below those of the server.
MAX_ACK_BYTES = 7 << 20
MAX_FAIL_BYTES = 900 << 10
MAX_BEAT_BYTES = 7 << 20

LAST_JOBS_SECONDS = 0.5
"""How long a fetch that is cancelled waits for jobs that the server may just have leased."""

Item = TypeVar("Item")


class Requests:
    """Sends requests to one server."""

    def __init__(self, url: str, key: str) -> None:
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"url: got {url!r}, want http://host:port or https://host")
        if at.username or at.query or at.fragment:
            raise ValueError("url: no user, query or fragment is allowed")
        self.base = url.rstrip("/")
        self.key = key
        headers = {"user-agent": "code-sous-python", "content-type": "application/json"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self._client = httpx.AsyncClient(headers=headers, timeout=None)

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, accepted: tuple[int, ...] = ()
    ) -> Any:
        """Sends a request and returns the decoded answer. Statuses of ``accepted`` are no errors. Its caller bounds
        the time."""
        try:
            response = await self._client.request(method, self.base + path, content=body, headers=dict(headers or {}))
        except httpx.HTTPError as error:
            raise UnreachableError(f"{self.base} did not answer: {error or type(error).__name__}") from error
        try:
            answer = json.loads(response.content)
        except ValueError:
            raise ApiError("", f"{self.base} answered {response.status_code} without JSON", status=response.status_code) from None
        if response.status_code >= 300 and not (response.status_code in accepted and isinstance(answer, dict) and "jobs" in answer):
            raise problem(response.status_code, answer)
        return answer

    async def close(self) -> None:
        await self._client.aclose()


def problem(status: int, answer: Any) -> ApiError:
    """Returns the error of an answer that refuses a request."""
    if not isinstance(answer, dict) or not isinstance(answer.get("code"), str):
        return ApiError("", f"the answer has status {status} and no code", status=status)
    fields = tuple(FieldError(f.get("path", ""), f.get("message", "")) for f in answer.get("errors") or [])
    return ApiError(
        answer["code"], answer.get("detail", ""), status=status, retry_after=answer.get("retry_after_ms", 0) / 1000, fields=fields,
        request_id=answer.get("request_id", ""),
    )


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
        call = asyncio.create_task(self._requests.send("POST", self._path + "fetch", body))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((call, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                # The server releases jobs if it sees that their fetch has gone. It cannot see that of an answer on
                # its way.
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
            answer = await self._requests.send("POST", self._path + verb, body(part), accepted=(409,))
            outcomes.extend(
                Outcome(o.get("id", ""), o.get("ok", False), o.get("code", ""), o.get("message", ""), o.get("state", "")) for o in answer["jobs"]
            )
        return outcomes


def to_job(j: dict[str, Any]) -> FetchedJob:
    return FetchedJob(
        id=j["id"], namespace=j["namespace"], queue=j["queue"], payload=j["payload"], attempt=j["attempt"], max_attempts=j["max_attempts"],
        lease_epoch=j["lease_epoch"], lease_expires_ms=j["lease_expires_ms"], created_at_ms=j["created_at_ms"], checkpoint=j.get("checkpoint"),
        tags=j.get("tags", {}), parent_id=j.get("parent_id", ""), callback_of=j.get("callback_of", ""),
    )


def dumps(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def joined(fields: dict[str, Any], **encoded: bytes | None) -> bytes:
    """Returns a JSON object of fields, and of fields that are JSON already."""
    rest = b"".join(b"," + dumps(name) + b":" + text for name, text in encoded.items() if text is not None)
    return dumps(fields)[:-1] + rest + b"}"


def from_ack(a: Ack) -> bytes:
    return joined({"id": a.id, "lease_epoch": a.lease_epoch, "continue": a.continue_, "hold": a.hold}, result=a.result, checkpoint=a.checkpoint)


def from_fail(f: Fail) -> dict[str, Any]:
    fields = {
        "id": f.id, "lease_epoch": f.lease_epoch, "error": f.error, "stack": f.stack, "retry_after_ms": f.retry_after_ms,
        "snooze_ms": f.snooze_ms, "fatal": f.fatal,
    }
    return {name: value for name, value in fields.items() if value is not None}


def from_heartbeat(b: Heartbeat) -> bytes:
    fields: dict[str, Any] = {"id": b.id, "lease_epoch": b.lease_epoch, "lease_ms": b.lease_ms}
    if b.progress is not None:
        fields["progress"] = {"current": b.progress.current, "total": b.progress.total, "message": b.progress.message}
    return joined(fields, checkpoint=b.checkpoint)
