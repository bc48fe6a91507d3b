"""The client that adds and reads jobs."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote

from .errors import ApiError, UnreachableError
from .requests import Requests, dumps

REQUEST_SECONDS = 30.0
SENDS = 4
"""How often a request is sent if the server asks for a repeat."""


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options of a job. None stands for the default of docs/queue.md. Times are Unix milliseconds."""

    priority: Literal["critical", "high", "normal", "low"] | None = None
    run_at_ms: int | None = None
    expire_at_ms: int | None = None
    unique_key: str | None = None
    unique_ttl_ms: int | None = None
    max_attempts: int | None = None
    backoff: Literal["none", "fixed", "linear", "exponential"] | None = None
    base_delay_ms: int | None = None
    max_delay_ms: int | None = None
    jitter: bool | None = None
    tags: Mapping[str, str] | None = None
    depends_on: Sequence[str] | None = None
    on_dependency_failure: Literal["fail", "continue", "hold"] | None = None
    batch_id: str | None = None
    hold: bool | None = None
    result_schema: Any = None


@dataclass(frozen=True)
class EnqueuedJob:
    """The result for one job of an enqueue. If ``duplicate`` is set, another job has the unique key, and ``id`` is
    that job."""

    id: str
    state: str
    duplicate: bool


class Client:
    """Adds and reads jobs of one namespace, and connects workers to it. Use it as an asynchronous context manager,
    or close it with ``close``."""

    def __init__(self, url: str | None = None, key: str | None = None, *, tenant: str = "t_default", namespace: str = "default") -> None:
        """``url`` and ``key`` default to SOUS_URL and SOUS_KEY of the environment, or to http://127.0.0.1:8080 without
        a key. Raises ValueError for a URL that is not one of a server."""
        self.tenant, self.namespace = tenant, namespace
        self._requests = Requests(url or os.environ.get("SOUS_URL") or "http://127.0.0.1:8080", os.environ.get("SOUS_KEY", "") if key is None else key)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._requests.close()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._requests.base

    async def enqueue(self, queue: str, payload: Any, options: JobOptions = JobOptions(), *, idempotency_key: str | None = None) -> EnqueuedJob:
        """Adds a job. It is durable when the call returns."""
        [job] = await self.enqueue_all(queue, [payload], options, idempotency_key=idempotency_key)
        return job

    async def enqueue_all(
        self, queue: str, payloads: Sequence[Any], options: JobOptions = JobOptions(), *, idempotency_key: str | None = None
    ) -> list[EnqueuedJob]:
        """Adds up to 1,000 jobs with the same options, all or none. A repeat under the same idempotency key within a
        day adds nothing. Repeat an enqueue that failed with UnreachableError under a key only: it may have added the
        jobs."""
        path = f"/v1/tenants/{quote(self.tenant, safe='')}/namespaces/{quote(self.namespace, safe='')}/queues/{quote(queue, safe='')}/jobs"
        given = {f.name: value for f in fields(options) if (value := getattr(options, f.name)) is not None}
        body = dumps({"jobs": [{"payload": payload, **given} for payload in payloads]})
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        answer = await self._send("POST", path, body, headers)
        return [EnqueuedJob(j["id"], j["state"], j["duplicate"]) for j in answer["jobs"]]

    async def job(self, id: str) -> dict[str, Any]:
        """Returns a job with the fields of docs/queue.md, as the API names them. It raises ApiError with the code
        CS_JOB_NOT_FOUND."""
        answer: dict[str, Any] = await self._send("GET", f"/v1/tenants/{quote(self.tenant, safe='')}/jobs/{quote(id, safe='')}", None, {})
        return answer

    async def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        """Sends a request, and repeats it if that is safe and the server asks for it."""
        sent = 0
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                while True:
                    sent += 1
                    try:
                        return await self._requests.send(method, path, body, timeout=REQUEST_SECONDS, headers=headers)
                    except ApiError as error:
                        repeatable = method == "GET" or "idempotency-key" in headers
                        if error.status != 503 or not error.retry_after or not repeatable or sent >= SENDS:
                            raise
                        await asyncio.sleep(error.retry_after)
        except TimeoutError:
            raise UnreachableError(f"{self.url} did not answer within {REQUEST_SECONDS:.0f} s") from None
