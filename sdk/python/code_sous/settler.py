"""Settles jobs in groups."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from .errors import ApiError
from .job import Job, Settlement
from .limits import MAX_SETTLE_JOBS
from .source import Outcome, Source
from .wait import Backoff, pause


class Settler:
    """Settles jobs in groups: those that arrive during a call are settled by the next one. A single job is settled
    at once. ``settled`` is called when a job is settled or given up, ``warning`` for each problem."""

    def __init__(
        self, source: Source, worker_id: str, lease: float, ended: asyncio.Event, settled: Callable[[Job], None], warning: Callable[[Exception], None]
    ) -> None:
        self._source, self._worker_id, self._lease, self._ended = source, worker_id, lease, ended
        self._settled, self._warning = settled, warning
        self._waiting: list[Settlement] = []
        self._working: asyncio.Task[None] | None = None

    def add(self, how: Settlement) -> None:
        self._waiting.append(how)
        if self._working is None:
            self._working = asyncio.create_task(self._work())

    async def flush(self) -> None:
        """Waits until all jobs are settled."""
        while self._working is not None:
            await self._working

    async def _work(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MAX_SETTLE_JOBS], self._waiting[MAX_SETTLE_JOBS:]
                acks = [s for s in group if s.ack is not None]
                fails = [s for s in group if s.fail is not None]
                await asyncio.gather(
                    self._settle(acks, self._ack_refused, lambda: self._source.ack([s.ack for s in acks if s.ack])),
                    self._settle(fails, self._refused, lambda: self._fail(fails)),
                )
        finally:
            self._working = None

    async def _fail(self, fails: list[Settlement]) -> list[Outcome]:
        beats = [s.beat for s in fails if s.beat is not None]
        if beats:
            await self._source.heartbeat(self._worker_id, beats)
        return await self._source.fail([s.fail for s in fails if s.fail is not None])

    async def _settle(
        self, group: list[Settlement], refused: Callable[[Settlement, Outcome], None], call: Callable[[], Awaitable[list[Outcome]]]
    ) -> None:
        """Repeats a call until it is answered, or until all leases must have expired. Repeats of a call of the same
        lease succeed."""
        if not group:
            return
        backoff, until = Backoff(0.1, 5.0), time.monotonic() + self._lease
        while True:
            try:
                async with asyncio.timeout(self._lease):
                    outcomes = await call()
                if len(outcomes) != len(group):
                    raise ApiError("", f"got {len(outcomes)} outcomes for {len(group)} jobs")
            except Exception as error:
                self._warning(problem(f"settle {len(group)} jobs", error))
                if self._ended.is_set() or time.monotonic() > until or (isinstance(error, ApiError) and error.permanent):
                    break
            else:
                for how, outcome in zip(group, outcomes):
                    if outcome.ok:
                        self._settled(how.job)
                    else:
                        refused(how, outcome)
                return
            await pause(backoff.next(), self._ended)
        for how in group:
            self._settled(how.job)

    def _ack_refused(self, how: Settlement, outcome: Outcome) -> None:
        """Fails an attempt whose result the queue refuses: its lease would otherwise expire as if the worker had died."""
        if outcome.code in ("CS_JOB_LEASE_LOST", "CS_JOB_NOT_FOUND"):
            self._refused(how, outcome)
            return
        self._waiting.append(how.job._failed(ApiError(outcome.code, f"the ack was refused: {outcome.message}")))

    def _refused(self, how: Settlement, outcome: Outcome) -> None:
        if not how.job._lost:
            self._warning(ApiError(outcome.code, f"job {outcome.id} was not settled: {outcome.message}"))
        self._settled(how.job)


def problem(what: str, error: Exception) -> Exception:
    """Returns an error with the operation that failed."""
    wrapped = RuntimeError(f"{what}: {error or type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped
