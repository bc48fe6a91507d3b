"""The values that pass between a worker and the source of its jobs."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class FetchedJob:
    """A job under a lease, as the server hands it out."""

    id: str
    namespace: str
    queue: str
    payload: Any
    attempt: int
    """The number of this attempt, from 1."""
    max_attempts: int
    lease_epoch: int
    """Identifies the lease."""
    lease_expires_ms: int
    created_at_ms: int
    checkpoint: Any = None
    """The checkpoint of an earlier attempt, None for none."""
    tags: Mapping[str, str] = field(default_factory=dict)
    parent_id: str = ""
    """The previous job of the chain."""
    callback_of: str = ""
    provider: str = ""
    """The provider of models that the routing of the job or of its queue chose."""
    model: str = ""
    """The model that the worker should ask."""
    """The batch whose callback this is."""


@dataclass(frozen=True)
class FetchRequest:
    queues: tuple[str, ...]
    worker_id: str
    count: int
    lease_ms: int
    wait_ms: int
    hostname: str
    version: str


@dataclass(frozen=True)
class Progress:
    current: int
    total: int = 0
    message: str = ""


@dataclass(frozen=True)
class Ack:
    """Settles an attempt that succeeded. ``result`` and ``checkpoint`` are JSON."""

    id: str
    lease_epoch: int
    result: bytes | None = None
    continue_: bool = False
    hold: str = ""
    checkpoint: bytes | None = None


@dataclass(frozen=True)
class Fail:
    """Settles an attempt that failed."""

    id: str
    lease_epoch: int
    error: str
    stack: str = ""
    retry_after_ms: int | None = None
    snooze_ms: int | None = None
    fatal: bool = False
    provider_error: dict[str, Any] | None = None


@dataclass(frozen=True)
class Heartbeat:
    """Extends a lease. ``checkpoint`` is JSON."""

    id: str
    lease_epoch: int
    lease_ms: int
    progress: Progress | None = None
    checkpoint: bytes | None = None


@dataclass(frozen=True)
class Outcome:
    """The result for one job of an ack, a fail or a heartbeat."""

    id: str
    ok: bool
    code: str = ""
    message: str = ""
    state: str = ""


class Source(Protocol):
    """Provides jobs and settles them. ``ack``, ``fail`` and ``heartbeat`` return one outcome for each job, in
    order; after an error the outcome of every job is unknown."""

    async def fetch(self, request: FetchRequest, stop: asyncio.Event) -> list[FetchedJob]:
        """Leases jobs, and waits for the first. It ends soon after ``stop`` is set, and returns the jobs that it
        has leased by then."""

    async def ack(self, acks: Sequence[Ack]) -> list[Outcome]: ...

    async def fail(self, fails: Sequence[Fail]) -> list[Outcome]: ...

    async def heartbeat(self, worker_id: str, beats: Sequence[Heartbeat]) -> list[Outcome]: ...

    async def close(self) -> None: ...
