"""Requests of the HTTP API. Threads send them, with the standard library."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from .errors import ApiError, FieldError, UnreachableError

THREADS = 32
"""How many requests of a client are in progress at once."""

CONNECT_SECONDS = 10.0

IDLE_SECONDS = 15.0
"""How long a connection is kept for the next request: the server and proxies keep it for longer."""


class Exchange:
    """A request in progress. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._over = False

    def attach(self, connection: http.client.HTTPConnection) -> None:
        """Sets the connection. Raises ConnectionAbortedError if the exchange was cancelled before."""
        with self._lock:
            if self._over:
                raise ConnectionAbortedError("the request was cancelled")
            self._connection = connection

    def detach(self) -> None:
        with self._lock:
            self._connection = None

    def end_request(self) -> None:
        """Lets the server notice that the answer is awaited no longer. One that is on its way still arrives."""
        self._shutdown(socket.SHUT_WR)

    def cancel(self) -> None:
        """Ends the exchange, whose thread gets an error."""
        self._shutdown(socket.SHUT_RDWR)

    def _shutdown(self, how: int) -> None:
        with self._lock:
            self._over = True
            sock = self._connection.sock if self._connection is not None else None
            if sock is not None:
                with contextlib.suppress(OSError):  # it has just ended by itself
                    socket.socket.shutdown(sock, how)  # that of a TLS socket would discard its keys


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
        self._secure, self._host, self._port, self._prefix = at.scheme == "https", str(at.hostname), at.port, at.path.rstrip("/")
        self._headers = {"user-agent": "code-sous-python", "content-type": "application/json"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._threads = ThreadPoolExecutor(THREADS, "code-sous-http")
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        accepted: tuple[int, ...] = (),
        exchange: Exchange | None = None,
    ) -> Any:
        """Sends a request and returns the decoded answer. Statuses of ``accepted`` are no errors. It fails if the server
        is silent for ``timeout`` seconds."""
        exchange = exchange or Exchange()
        call = asyncio.get_running_loop().run_in_executor(self._threads, self._exchange, exchange, method, path, body, dict(headers or {}), timeout)
        try:
            status, text = await call
        except asyncio.CancelledError:
            exchange.cancel()
            raise
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"{self.base} did not answer: {error or type(error).__name__}") from error
        try:
            answer = json.loads(text)
        except ValueError:
            raise ApiError("", f"{self.base} answered {status} without JSON", status=status) from None
        if status >= 300 and not (status in accepted and isinstance(answer, dict) and "jobs" in answer):
            raise problem(status, answer)
        return answer

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _exchange(
        self, exchange: Exchange, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, bytes]:
        """Sends a request and returns its status and body. It runs in a thread."""
        connection = self._take()
        try:
            if connection.sock is None:
                connection.connect()
            if connection.sock is not None:  # connect sets it
                connection.sock.settimeout(timeout)
            exchange.attach(connection)
            connection.request(method, self._prefix + path, body, {**self._headers, **headers})
            response = connection.getresponse()
            text = response.read()
        except BaseException:
            connection.close()
            raise
        finally:
            exchange.detach()
        if response.will_close or exchange._over:
            connection.close()
        else:
            with self._lock:
                self._idle.append((time.monotonic(), connection))
        return response.status, text

    def _take(self) -> http.client.HTTPConnection:
        """Returns a connection that is idle, or a new one."""
        oldest = time.monotonic() - IDLE_SECONDS
        with self._lock:
            expired = [c for since, c in self._idle if since < oldest]
            self._idle = [(since, c) for since, c in self._idle if since >= oldest]
            connection = self._idle.pop()[1] if self._idle else None
        for other in expired:
            other.close()
        if connection is not None:
            return connection
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT_SECONDS)
        return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_SECONDS)


def problem(status: int, answer: Any) -> ApiError:
    """Returns the error of an answer that refuses a request."""
    if not isinstance(answer, dict) or not isinstance(answer.get("code"), str):
        return ApiError("", f"the answer has status {status} and no code", status=status)
    fields = tuple(FieldError(f.get("path", ""), f.get("message", "")) for f in answer.get("errors") or [])
    return ApiError(
        answer["code"], answer.get("detail", ""), status=status, retry_after=answer.get("retry_after_ms", 0) / 1000, fields=fields,
        request_id=answer.get("request_id", ""),
    )


def dumps(value: Any) -> bytes:
    """Returns the JSON of a value that has one."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
