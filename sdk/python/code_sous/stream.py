"""The source of jobs over one stream."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import messages
from .connection import Connection, to_error
from .errors import ApiError
from .limits import parts_of
from .source import Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome, Source
from .wait import Backoff

OPEN_SECONDS = 10.0
"""Bounds the opening of a stream."""

FIRST_PAUSE, MOST_PAUSE, LEAST_PAUSE = 1.0, 60.0, 0.1
"""A stream that could not be opened is tried again after a random time up to a bound, which grows, in seconds."""

STEADY_SECONDS = 30.0
"""How long a stream must last to be replaced soon."""

MAX_FRAME_BYTES = 7 << 20
"""Bounds the variable fields of a frame, below the bound of the server."""

Item = TypeVar("Item")


class StreamSource:
    """A source over one stream. Where it cannot be opened, calls use the fallback, and the stream is tried again
    later. gRPC has no paths before those of its methods, so a URL with a path has no stream."""

    def __init__(
        self, url: str, key: str, tenant: str, namespace: str, fallback: Source, connected: Callable[[], None], warning: Callable[[Exception], None]
    ) -> None:
        self._url, self._key, self._tenant, self._namespace = url, key, tenant, namespace
        self._fallback, self._connected, self._warning = fallback, connected, warning
        self._possible = urlsplit(url).path in ("", "/")
        self._backoff = Backoff(FIRST_PAUSE, MOST_PAUSE, LEAST_PAUSE)
        self._hello: Any = None  # of the worker, from its first fetch on
        self._connection: Connection | None = None
        self._opening = self._closed = False
        self._retry_at = 0.0

    async def fetch(self, request: FetchRequest, stop: asyncio.Event) -> list[FetchedJob]:
        if self._hello is None:
            self._hello = {
                "tenant": self._tenant, "namespace": self._namespace, "worker_id": request.worker_id, "hostname": request.hostname,
                "version": request.version,
            }
        connection = await self._stream()
        if connection is None:
            return await self._fallback.fetch(replace(request, wait_ms=self._until_retry(request.wait_ms)), stop)
        fetch = {"queues": request.queues, "credits": request.count, "lease_ms": request.lease_ms, "wait_ms": request.wait_ms, "once": True}
        return [self._to_job(j) for j in await connection.fetch(fetch, stop)]

    async def ack(self, acks: Sequence[Ack]) -> list[Outcome]:
        def size(a: Ack) -> int:
            return len(a.result or b"") + len(a.checkpoint or b"") + 4 * len(a.hold)

        connection = await self._stream()
        if connection is None:
            return await self._fallback.ack(acks)
        return await self._settle(connection, acks, size, lambda part: {"acks": [from_ack(a) for a in part]}, "acked")

    async def fail(self, fails: Sequence[Fail]) -> list[Outcome]:
        def size(f: Fail) -> int:
            return 4 * (len(f.error) + len(f.stack))

        connection = await self._stream()
        if connection is None:
            return await self._fallback.fail(fails)
        return await self._settle(connection, fails, size, lambda part: {"fails": [from_fail(f) for f in part]}, "failed")

    async def heartbeat(self, worker_id: str, beats: Sequence[Heartbeat]) -> list[Outcome]:
        def size(b: Heartbeat) -> int:
            return len(b.checkpoint or b"") + (4 * len(b.progress.message) if b.progress else 0)

        connection = await self._stream()
        if connection is None:
            return await self._fallback.heartbeat(worker_id, beats)
        return await self._settle(connection, beats, size, lambda part: {"heartbeats": [from_heartbeat(b) for b in part]}, "extended")

    async def close(self) -> None:
        """Ends the stream. Calls in progress fail; later ones use the fallback."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    async def _settle(
        self, connection: Connection, items: Sequence[Item], size: Callable[[Item], int], frame: Callable[[list[Item]], dict[str, Any]], part_name: str
    ) -> list[Outcome]:
        """Sends jobs in frames of bounded size, one after the other, and returns their outcomes."""
        outcomes: list[Outcome] = []
        for part in parts_of(items, MAX_FRAME_BYTES, size):
            response = await connection.call(messages.LifecycleRequest(**frame(part)))
            if not response.HasField(part_name):
                raise ApiError("", f"a response lacks its part {part_name}")
            answer = getattr(response, part_name)
            if answer.HasField("error"):
                raise to_error(answer.error)
            outcomes.extend(Outcome(o.id, o.ok, o.code, o.message, o.state) for o in answer.outcomes)
        return outcomes

    async def _stream(self) -> Connection | None:
        """Returns the stream, and opens it if it may. It is None if there is none now, or another call opens it."""
        if self._connection is not None and self._connection.usable:
            return self._connection
        if not self._possible or self._closed or self._opening or self._hello is None or time.monotonic() < self._retry_at:
            return None
        self._opening = True
        try:
            return await self._open()
        except Exception as error:
            self._postpone()
            text = str(error) or f"the server did not answer within {OPEN_SECONDS:.0f} s"
            warning = ApiError("", f"a stream could not be opened, so calls use requests for now: {text}")
            warning.__cause__ = error
            self._warning(warning)
            return None
        finally:
            self._opening = False

    async def _open(self) -> Connection:
        """Opens a stream, and returns it once the server has answered its first frame."""
        opened = 0.0

        def ended(reason: Exception | None) -> None:
            if opened == 0:
                return  # the call of hello fails
            if time.monotonic() - opened > STEADY_SECONDS:
                self._backoff.reset()
            self._postpone()
            if reason is not None and not self._closed:
                warning = ApiError("", f"the stream ended, so calls use requests for now: {reason}")
                warning.__cause__ = reason
                self._warning(warning)

        connection = Connection(self._url, self._key, ended)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await connection.call(messages.LifecycleRequest(hello=self._hello))
            if self._closed:
                raise ConnectionError("the worker has stopped")
        except BaseException:
            await connection.close()
            raise
        opened = time.monotonic()
        self._connection = connection
        self._connected()
        return connection

    def _until_retry(self, wait_ms: int) -> int:
        """Returns how long a fetch without a stream waits: at most until a stream may be opened again."""
        if not self._possible:
            return wait_ms
        return min(wait_ms, round(1000 * max(LEAST_PAUSE, self._retry_at - time.monotonic())))

    def _postpone(self) -> None:
        """Sets when a stream may be opened again."""
        self._retry_at = time.monotonic() + self._backoff.next()

    def _to_job(self, j: Any) -> FetchedJob:
        return FetchedJob(
            id=j.id, namespace=self._namespace, queue=j.queue, payload=json.loads(j.payload or b"null"), attempt=j.attempt, max_attempts=j.max_attempts,
            lease_epoch=j.lease_epoch, lease_expires_ms=j.lease_expires_ms, created_at_ms=j.created_at_ms,
            checkpoint=json.loads(j.checkpoint or b"null"), tags=dict(j.tags), parent_id=j.parent_id, callback_of=j.callback_of,
            provider=j.provider, model=j.model,
        )


def from_ack(a: Ack) -> dict[str, Any]:
    return {
        "id": a.id, "lease_epoch": a.lease_epoch, "result": a.result or b"", "continue": a.continue_, "hold": text(a.hold), "checkpoint": a.checkpoint or b"",
    }


def from_fail(f: Fail) -> dict[str, Any]:
    fields = {
        "id": f.id, "lease_epoch": f.lease_epoch, "error": text(f.error), "stack": text(f.stack), "retry_after_ms": f.retry_after_ms,
        "snooze_ms": f.snooze_ms, "fatal": f.fatal, "provider_error": f.provider_error,
    }
    return {name: value for name, value in fields.items() if value is not None}


def from_heartbeat(b: Heartbeat) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": b.id, "lease_epoch": b.lease_epoch, "lease_ms": b.lease_ms, "checkpoint": b.checkpoint or b""}
    if b.progress is not None:
        fields["progress"] = {"current": b.progress.current, "total": b.progress.total, "message": text(b.progress.message)}
    return fields


def text(value: str) -> str:
    """Returns the text in valid Unicode, as messages have it."""
    return value.encode(errors="replace").decode()
