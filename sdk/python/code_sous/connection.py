"""One open stream of a worker, over gRPC."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import grpc
import grpc.aio

from . import messages
from .errors import ApiError, FieldError

LAST_JOBS_SECONDS = 5.0
"""How long a fetch that is cancelled waits for its last jobs."""

PING_MS = 15_000
"""How long a stream may be silent before the server is asked whether it is there."""

MAX_RESPONSE_BYTES = 16 << 20
"""Bounds a response, of which the server splits larger ones."""

OPTIONS = [
    ("grpc.keepalive_time_ms", PING_MS),
    ("grpc.keepalive_timeout_ms", PING_MS),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),  # a new stream has a new connection
    ("grpc.primary_user_agent", "code-sous-python"),
]


class Broken(Exception):
    """The stream broke before the answer: the outcome of the call is unknown."""


class _Call:
    """A call whose responses are awaited."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def take(self, response: Any) -> bool:
        """Takes a response, and reports whether it is the last one."""
        self.jobs.extend(response.fetched.jobs)
        refused = response.error if response.HasField("error") else response.fetched.error if response.fetched.HasField("error") else None
        over = refused is not None or not response.HasField("fetched") or response.fetched.done
        if over and not self.response.done():
            if refused is None:
                self.response.set_result(response)
            else:
                self.response.set_exception(to_error(refused))
        return over

    def fail(self, error: Exception) -> None:
        if not self.response.done():
            self.response.set_exception(error)


class Connection:
    """An open stream. It is usable once a call was answered. ``ended`` is called once with the reason when the
    stream has ended, None if the server or this side ended it in order."""

    def __init__(self, url: str, key: str, ended: Callable[[Exception | None], None]) -> None:
        at = urlsplit(url)
        secure = at.scheme == "https"
        target = at.netloc if at.port else f"{at.netloc}:{443 if secure else 80}"
        self._channel = (
            grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), options=OPTIONS) if secure else grpc.aio.insecure_channel(target, options=OPTIONS)
        )
        self._ended = ended
        self._last = 0
        self._draining = self._closed = False
        self._error: Exception | None = None
        self._calls: dict[int, _Call] = {}
        self._frames: asyncio.Queue[Any] = asyncio.Queue()
        method = self._channel.stream_stream(
            messages.METHOD, request_serializer=messages.LifecycleRequest.SerializeToString, response_deserializer=messages.LifecycleResponse.FromString
        )
        self._stream = method(metadata=(("authorization", f"Bearer {key}"),) if key else ())
        self._sender = asyncio.create_task(self._send())
        self._receiver = asyncio.create_task(self._receive())

    @property
    def usable(self) -> bool:
        """Whether calls may begin."""
        return not self._draining and self._error is None

    async def close(self) -> None:
        """Ends the stream. Its calls fail."""
        self._closed = True
        self._stream.cancel()
        await self._receiver

    async def call(self, frame: Any) -> Any:
        """Sends a frame without a fetch and returns its response."""
        id, call = self._begin(frame)
        try:
            return await call.response
        finally:
            self._forget(id)

    async def fetch(self, fetch: Any, stop: asyncio.Event) -> list[Any]:
        """Sends a fetch that ends with its first jobs, and returns them. Jobs that arrived before a failure are
        returned: they are leased."""
        id, call = self._begin(messages.LifecycleRequest(fetch=fetch))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((call.response, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not call.response.done():
                with contextlib.suppress(TimeoutError, Broken, ApiError):
                    async with asyncio.timeout(LAST_JOBS_SECONDS):
                        await self.call(messages.LifecycleRequest(cancel_fetches=[id]))
                        await asyncio.wait((call.response,))
            error = call.response.exception() if call.response.done() else None
            if error is not None and not call.jobs:
                raise error
            return call.jobs
        finally:
            stopped.cancel()
            self._forget(id)

    def _begin(self, frame: Any) -> tuple[int, _Call]:
        self._last += 1
        call = _Call()
        if self._error is not None:
            call.fail(self._error)
        else:
            frame.request_id = self._last
            self._calls[self._last] = call
            self._frames.put_nowait(frame)
        return self._last, call

    def _forget(self, id: int) -> None:
        """Unregisters a call. The last one of a stream that drains ends it."""
        call = self._calls.pop(id, None)
        if call is not None:
            call.response.cancel()
        if self._draining and not self._calls:
            self._frames.put_nowait(None)

    async def _send(self) -> None:
        """Sends frames. A task of its own does it, because a cancelled write would end the stream."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            while (frame := await self._frames.get()) is not None:
                await self._stream.write(frame)
            await self._stream.done_writing()

    async def _receive(self) -> None:
        """Passes responses to their calls until the stream ends."""
        reason: Exception | None = None
        try:
            while (response := await self._stream.read()) is not grpc.aio.EOF:
                call = self._calls.get(response.request_id)
                if call is not None and call.take(response):
                    self._calls.pop(response.request_id, None)
                if response.draining:
                    self._draining = True
                if self._draining:
                    self._forget(0)
            if (code := await self._stream.code()) is not grpc.StatusCode.OK:
                reason = reason_of(code, await self._stream.details(), await self._stream.trailing_metadata())
        except grpc.aio.AioRpcError as error:
            reason = reason_of(error.code(), error.details(), error.trailing_metadata())
        except asyncio.CancelledError:
            pass
        self._error = reason if isinstance(reason, ApiError) else Broken(f"the stream broke before the answer: {reason or 'it was closed'}")
        for call in list(self._calls.values()):
            call.fail(self._error)
        self._sender.cancel()
        await asyncio.gather(self._sender, return_exceptions=True)
        await self._channel.close()
        self._ended(None if self._draining or self._closed else self._error)


def reason_of(code: Any, details: str | None, metadata: Any) -> Exception:
    """Returns the error of the API that a stream ended with, or one of gRPC."""
    for name, value in metadata or ():
        if name != "grpc-status-details-bin":
            continue
        for detail in messages.Status.FromString(value).details:
            if detail.type_url.endswith("/sous.worker.v1.Error"):
                return to_error(messages.Error.FromString(detail.value))
    return ConnectionError(f"{code.name}: {details}")


def to_error(e: Any) -> ApiError:
    """Converts an error of a response."""
    return ApiError(e.code, e.message, retry_after=e.retry_after_ms / 1000, fields=tuple(FieldError(f.path, f.message) for f in e.fields))
