"""The worker: it runs handlers for the jobs of queues."""

import asyncio
import contextlib
import inspect
import logging
import os
import re
import secrets
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from .client import Client
from .errors import Aborted, AbortReason, ApiError
from .http import HttpSource
from .job import Job
from .limits import MAX_FETCH_JOBS, MAX_FETCH_QUEUES, MAX_FETCH_WAIT, MAX_LEASE, MAX_SETTLE_JOBS, MIN_LEASE
from .settler import Settler, problem
from .source import FetchRequest, Source
from .stream import StreamSource
from .wait import Backoff, pause

Handler = Callable[[Job], Any]
"""Runs a job: a coroutine function, which is cancelled if it must stop, or a function, which runs in a thread and
checks ``job.aborted``. Its result is the result of the job, at most 1 MiB of JSON; an exception fails the attempt,
which is retried after its backoff unless it is one of Fatal, RetryAfter and Snooze."""

AnyHandler = TypeVar("AnyHandler", bound=Handler)

FETCH_GRACE = 15.0
"""How long a fetch may take beyond its wait before the connection is considered dead, in seconds."""

log = logging.getLogger("code_sous")


@dataclass(frozen=True)
class Event:
    """An event of a worker."""

    kind: Literal["started", "completed", "failed", "dropped", "returned", "connected", "warning"]
    """A handler begins; it returned, or raised, and its job is being settled; its result is dropped, because the
    job is no longer this worker's; a job that no handler has finished returns to its queue; a stream was opened; a
    problem that the worker copes with."""
    job: Job | None = None
    error: BaseException | None = None
    reason: AbortReason | None = None


class Worker:
    """Runs handlers for the jobs of queues: it fetches ahead, keeps leases alive, settles in groups, and stops
    without losing jobs. A handler runs at least once: what it does must be safe to repeat."""

    def __init__(
        self,
        source: Client | Source,
        *,
        concurrency: int = 10,
        ahead: int | None = None,
        lease: float = 30.0,
        wait: float = 20.0,
        stop_timeout: float = 25.0,
        transport: Literal["stream", "http"] = "stream",
        id: str | None = None,
        version: str = "",
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        """``concurrency`` is the number of handlers that run at once, and ``ahead`` the number of jobs that are fetched
        in advance, under leases (default: ``concurrency``). Times are seconds: ``lease`` is the duration of leases, which
        are renewed after a third of it; ``wait`` is how long one fetch waits for jobs; ``stop_timeout`` is how long
        handlers may continue after ``stop``. The transport ``stream`` uses requests where a stream cannot be opened, and
        tries again later. Raises ValueError for a bad value."""
        self.id = id or f"{re.sub(r'[^A-Za-z0-9_.:-]', '-', socket.gethostname())}-{os.getpid()}-{secrets.token_hex(4)}"
        self._concurrency, self._ahead = concurrency, concurrency if ahead is None else ahead
        self._lease, self._wait, self._stop_timeout, self._version = lease, wait, stop_timeout, version
        within("concurrency", concurrency, 1, float("inf"))
        within("ahead", self._ahead, 0, float("inf"))
        within("lease", lease, MIN_LEASE, MAX_LEASE)
        within("wait", wait, 0.001, MAX_FETCH_WAIT)
        within("stop_timeout", stop_timeout, 0, float("inf"))
        self._on_event = on_event
        self._source = self._source_of(source, transport) if isinstance(source, Client) else source
        self._handlers: dict[str, Handler] = {}
        self._in_hand: dict[str, Job] = {}
        self._queued: deque[Job] = deque()  # fetched, for the handlers
        self._handling: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()  # fetches end
        self._ended = asyncio.Event()  # heartbeats and settlements end
        self._settler = Settler(self._source, self.id, lease, self._ended, self._settled, self._warn)
        self._threads: ThreadPoolExecutor | None = None
        self._failure: Exception | None = None
        self._began = False

    def _source_of(self, client: Client, transport: str) -> Source:
        requests = HttpSource(client._requests, client.tenant, client.namespace)
        if transport == "http":
            return requests
        return StreamSource(
            client.url, client._requests.key, client.tenant, client.namespace, requests, lambda: self._emit(Event("connected")), self._warn
        )

    def handler(self, queue: str) -> Callable[[AnyHandler], AnyHandler]:
        """Registers the decorated function as the handler of a queue. Queues are fetched from in the order of their
        registration: a queue that is never empty starves later ones. Use it before ``run``."""

        def register(handler: AnyHandler) -> AnyHandler:
            self.handle(queue, handler)
            return handler

        return register

    def handle(self, queue: str, handler: Handler) -> None:
        """Registers the handler of a queue, as the decorator ``handler`` does."""
        if self._began:
            raise RuntimeError("handlers must be registered before run")
        if queue.startswith("fn."):
            raise ValueError(f"queue {queue} is served by the platform itself")
        self._handlers[queue] = handler

    def stop(self) -> None:
        """Lets ``run`` end: the worker returns jobs that no handler has started, lets the other handlers finish for
        ``stop_timeout``, and settles their jobs. A function in a thread that does not check its job delays the end."""
        self._stopping.set()

    async def run(self, signals: Iterable[signal.Signals] = ()) -> None:
        """Fetches and handles jobs until ``stop`` is called, one of ``signals`` arrives, or the server refuses the key
        or the settings of the worker for good: then it raises ApiError. Call it once."""
        if self._began:
            raise RuntimeError("run can be called once")
        if not 1 <= len(self._handlers) <= MAX_FETCH_QUEUES:
            raise ValueError(f"got handlers of {len(self._handlers)} queues, want 1 to {MAX_FETCH_QUEUES}")
        self._began = True
        loop = asyncio.get_running_loop()
        for number in signals:
            loop.add_signal_handler(number, self.stop)
        try:
            await self._run()
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
            if self._threads is not None:
                self._threads.shutdown(wait=False)
        if self._failure is not None:
            raise self._failure

    async def _run(self) -> None:
        """Works until the stop, which goes backwards through the pipeline: fetch, handlers, settler, heartbeats."""
        renewal = asyncio.create_task(self._beat())
        renewal.add_done_callback(self._beaten)
        try:
            await self._fetch()
            while self._queued:
                self._return(self._queued.popleft())
            halt = asyncio.get_running_loop().call_later(self._stop_timeout, self._halt)
            while self._handling:
                await asyncio.wait(set(self._handling))
            halt.cancel()
            await self._settler.flush()
        finally:
            self._ended.set()
            for task in self._handling:
                task.cancel()  # run itself was cancelled
            await asyncio.gather(renewal, *self._handling, return_exceptions=True)
            await self._source.close()

    def _halt(self) -> None:
        """Aborts the handlers that still run."""
        for job in list(self._in_hand.values()):
            job._abort("stopped")

    def _fail(self, error: Exception) -> None:
        """Stops the worker, whose jobs cannot be settled any more."""
        self._failure = self._failure or error
        self._stopping.set()
        self._halt()

    def _emit(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _warn(self, error: Exception) -> None:
        """Reports a problem. The worker stops if the server refuses its key."""
        if isinstance(error.__cause__, ApiError) and error.__cause__.denied:
            self._fail(error.__cause__)
            return
        log.warning("%s", error)
        self._emit(Event("warning", error=error))

    async def _fetch(self) -> None:
        """Fetches jobs until the stop. After an error it pauses, for a growing time."""
        backoff = Backoff(0.1, 5.0)
        while not self._stopping.is_set():
            count = min(self._concurrency + self._ahead - len(self._in_hand), MAX_FETCH_JOBS)
            if count <= 0:
                self._room.clear()
                await either(self._room, self._stopping)
                continue
            request = FetchRequest(
                tuple(self._handlers), self.id, count, milliseconds(self._lease), milliseconds(self._wait), socket.gethostname(), self._version
            )
            try:
                async with asyncio.timeout(self._wait + FETCH_GRACE):
                    jobs = await self._source.fetch(request, self._stopping)
            except Exception as error:
                if self._stopping.is_set():
                    return
                if isinstance(error, ApiError) and error.permanent:
                    self._fail(error)
                    return
                self._warn(problem("fetch", error))
                await pause(max(backoff.next(), min(error.retry_after, 5.0) if isinstance(error, ApiError) else 0), self._stopping)
                continue
            backoff.reset()
            for fetched in jobs:
                self._take(Job(fetched, milliseconds(self._lease), self._renew_now))

    def _take(self, job: Job) -> None:
        """Registers a job, and starts its handler or queues it. A job that is registered already had a lease that
        expired."""
        before = self._in_hand.get(job.id)
        if before is not None:
            before._abort("lease lost")
        self._in_hand[job.id] = job
        self._queued.append(job)
        self._fill()

    def _fill(self) -> None:
        """Starts handlers while there are jobs and slots."""
        while not self._stopping.is_set() and len(self._handling) < self._concurrency and self._queued:
            task = asyncio.create_task(self._handle(self._queued.popleft()))
            self._handling.add(task)
            task.add_done_callback(self._handled)

    def _handled(self, task: asyncio.Task[None]) -> None:
        self._handling.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a job could not be handled", exc_info=task.exception())  # an on_event that raises
        self._fill()

    async def _handle(self, job: Job) -> None:
        """Runs the handler of a job, and passes its outcome to the settler unless the lease is lost."""
        if job._lost:
            self._settled(job)
            return
        self._emit(Event("started", job))
        failure: BaseException | None = None
        try:
            settlement = job._succeeded(await self._call(job))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and job.aborted is None and self._ended.is_set():
                raise  # run itself was cancelled
            failure, settlement = error, job._failed(error)
        if job._lost:
            self._emit(Event("dropped", job, reason=job.aborted))
            self._settled(job)
        elif job.aborted is not None and isinstance(failure, (asyncio.CancelledError, Aborted)):
            self._return(job)
        else:
            self._settler.add(settlement)
            self._emit(Event("completed", job) if failure is None else Event("failed", job, failure))

    async def _call(self, job: Job) -> Any:
        """Calls the handler: a coroutine function in a task of its own, a function in a thread."""
        handler = self._handlers[job.queue]
        if not inspect.iscoroutinefunction(handler):
            self._threads = self._threads or ThreadPoolExecutor(self._concurrency, "code-sous")
            return await asyncio.get_running_loop().run_in_executor(self._threads, handler, job)
        job._task = asyncio.create_task(handler(job))
        try:
            return await job._task
        finally:
            job._task.cancel()
            job._task = None

    def _return(self, job: Job) -> None:
        """Returns a job to its queue: the attempt does not count."""
        self._emit(Event("returned", job))
        self._settler.add(job._returned())

    def _settled(self, job: Job) -> None:
        """Unregisters a job. A job of the same id that was fetched again stays."""
        if self._in_hand.get(job.id) is job:
            del self._in_hand[job.id]
        self._room.set()

    async def _beat(self) -> None:
        """Renews the leases of all jobs in hand every third of a lease: two renewals may fail before a lease ends."""
        while True:
            await pause(self._lease / 3, self._ended)
            if self._ended.is_set():
                return
            jobs = list(self._in_hand.values())
            for at in range(0, len(jobs), MAX_SETTLE_JOBS):
                try:
                    await self._renew(jobs[at : at + MAX_SETTLE_JOBS])
                except Exception as error:
                    self._warn(problem("heartbeat", error))

    def _beaten(self, task: asyncio.Task[None]) -> None:
        """Stops the worker if heartbeats ended because of a fault, such as an on_event that raises."""
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._fail(error)

    async def _renew(self, jobs: Sequence[Job]) -> None:
        """Sends one heartbeat for each job. A job whose lease is lost, or which was cancelled, has its handler ended."""
        beats = [job._take_heartbeat() for job in jobs]
        try:
            async with asyncio.timeout(self._lease / 3):
                outcomes = await self._source.heartbeat(self.id, beats)
            if len(outcomes) != len(jobs):
                raise ApiError("", f"got {len(outcomes)} outcomes for {len(jobs)} jobs")
        except BaseException:
            for job, beat in zip(jobs, beats):
                job._unsent(beat)
            raise
        for job, beat, outcome in zip(jobs, beats, outcomes):
            if outcome.ok:
                job._sent(beat)
            elif outcome.state == "cancelled":
                job._abort("cancelled")
            elif outcome.code in ("CS_JOB_LEASE_LOST", "CS_JOB_NOT_FOUND"):
                job._abort("lease lost")
            else:
                self._warn(ApiError(outcome.code, f"heartbeat of job {outcome.id}: {outcome.message}"))

    async def _renew_now(self, job: Job) -> None:
        """Sends the heartbeat of one job for its handler."""
        job.check()
        await self._renew([job])
        job.check()


async def either(first: asyncio.Event, second: asyncio.Event) -> None:
    """Waits until one of two events is set."""
    tasks = [asyncio.create_task(first.wait()), asyncio.create_task(second.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name}: got {value}, want {least} to {most}")
