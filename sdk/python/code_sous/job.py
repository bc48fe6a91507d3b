"""Jobs as handlers see them, and how their results settle them."""

import asyncio
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import Aborted, AbortReason, Fatal, ProviderError, RetryAfter, Snooze
from .limits import (
    MAX_CHECKPOINT_BYTES, MAX_ERROR_BYTES, MAX_PROGRESS_MESSAGE, MAX_RESULT_BYTES, MAX_RETRY_AFTER_MS, MAX_STACK_BYTES, delay_ms, encode, truncate,
)
from .source import Ack, Fail, FetchedJob, Heartbeat, Progress


@dataclass(frozen=True)
class Settlement:
    """How one job is settled: by one of ack and fail. ``beat`` is sent before fail."""

    job: "Job"
    ack: Ack | None = None
    fail: Fail | None = None
    beat: Heartbeat | None = None


class Job:
    """A job that a handler runs. Its methods may be called from the handler's thread."""

    def __init__(self, fetched: FetchedJob, lease_ms: int, renew: Callable[["Job"], Awaitable[None]]) -> None:
        self._fetched, self._lease_ms, self._renew = fetched, lease_ms, renew
        self._lock = threading.Lock()
        self._progress: Progress | None = None  # not sent yet
        self._checkpoint: bytes | None = None  # not sent yet
        self._latest: bytes | None = None  # the last one of the handler
        self._kept: bytes | None = None  # the last one that the queue has
        self._continue = False
        self._hold = ""
        self._aborted: AbortReason | None = None
        self._abort_event = threading.Event()
        self._task: asyncio.Task[Any] | None = None  # of a handler that can be cancelled

    @property
    def id(self) -> str:
        return self._fetched.id

    @property
    def queue(self) -> str:
        return self._fetched.queue

    @property
    def payload(self) -> Any:
        return self._fetched.payload

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._fetched.attempt

    @property
    def checkpoint(self) -> Any:
        """The checkpoint of an earlier attempt, None for none."""
        return self._fetched.checkpoint

    @property
    def tags(self) -> Mapping[str, str]:
        return self._fetched.tags

    @property
    def provider(self) -> str:
        """The provider of models that the routing of the job or of its queue chose, empty for none."""
        return self._fetched.provider

    @property
    def model(self) -> str:
        """The model that the handler should ask, empty if the provider names none."""
        return self._fetched.model

    @property
    def fetched(self) -> FetchedJob:
        """All that the server has handed out."""
        return self._fetched

    @property
    def aborted(self) -> AbortReason | None:
        """Why the handler must stop, None if it need not."""
        return self._aborted

    def check(self) -> None:
        """Raises Aborted if the handler must stop. Functions that are not coroutines call it regularly: they
        cannot be cancelled."""
        if self._aborted is not None:
            raise Aborted(self._aborted)

    def sleep(self, seconds: float) -> None:
        """Sleeps, and raises Aborted as soon as the handler must stop. It is for functions that are not coroutines."""
        self._abort_event.wait(seconds)
        self.check()

    def progress(self, current: int, total: int = 0, message: str = "") -> None:
        """Reports the progress of the job with the next heartbeat; only the last report in between is sent."""
        with self._lock:
            self._progress = Progress(int(current), int(total), truncate(message, MAX_PROGRESS_MESSAGE))

    def keep(self, checkpoint: object) -> None:
        """Stores a checkpoint, at most 256 KiB of JSON, from which a later attempt may continue: it finds it as
        ``checkpoint``. It is sent with the next heartbeat, or before the job fails or is returned. Raises TypeError
        or ValueError for a value that has no such JSON."""
        encoded = encode("checkpoint", checkpoint, MAX_CHECKPOINT_BYTES)
        with self._lock:
            self._checkpoint = self._latest = encoded

    async def heartbeat(self) -> None:
        """Sends a heartbeat now, with the progress and the checkpoint. The worker sends heartbeats by itself, too."""
        await self._renew(self)

    def continue_(self) -> None:
        """Makes the job pending again with its checkpoint, instead of completed, when the handler returns."""
        self._continue = True

    def hold(self, reason: str) -> None:
        """Holds the job for approval, instead of completing it, when the handler returns."""
        self._hold = reason

    def _abort(self, reason: AbortReason) -> None:
        """Ends the handler."""
        if self._aborted is not None:
            return
        self._aborted = reason
        self._abort_event.set()
        if self._task is not None:
            self._task.cancel(f"the handler was aborted: {reason}")

    @property
    def _lost(self) -> bool:
        """Whether the job is no longer this worker's."""
        return self._aborted in ("cancelled", "lease lost")

    def _take_heartbeat(self) -> Heartbeat:
        """Returns the next heartbeat, and takes the progress and the checkpoint that are not sent yet."""
        with self._lock:
            beat = Heartbeat(self.id, self._fetched.lease_epoch, self._lease_ms, self._progress, self._checkpoint)
            self._progress = self._checkpoint = None
        return beat

    def _unsent(self, beat: Heartbeat) -> None:
        """Restores the progress and the checkpoint of a heartbeat that failed, unless there are newer ones."""
        with self._lock:
            self._progress = self._progress or beat.progress
            self._checkpoint = beat.checkpoint if self._checkpoint is None else self._checkpoint

    def _sent(self, beat: Heartbeat) -> None:
        """Records that the queue has accepted a heartbeat."""
        if beat.checkpoint is not None:
            self._kept = beat.checkpoint

    def _unsaved(self) -> Heartbeat | None:
        """Returns the heartbeat with the last checkpoint, None if the queue has it: a fail has no field for one."""
        if self._latest is None or self._latest == self._kept:
            return None
        return Heartbeat(self.id, self._fetched.lease_epoch, self._lease_ms, self._progress, self._latest)

    def _succeeded(self, value: object) -> Settlement:
        """Returns the settlement of a handler that returned. A result that cannot be stored fails the attempt."""
        id, epoch = self.id, self._fetched.lease_epoch
        if self._hold or self._continue:
            return Settlement(self, ack=Ack(id, epoch, continue_=not self._hold, hold=self._hold, checkpoint=self._latest))
        try:
            result = None if value is None else encode("result", value, MAX_RESULT_BYTES)
        except (TypeError, ValueError, RecursionError) as error:
            return self._failed(error)
        return Settlement(self, ack=Ack(id, epoch, result=result))

    def _failed(self, error: BaseException) -> Settlement:
        """Returns the settlement of an attempt that failed with ``error``."""
        id, epoch, message = self.id, self._fetched.lease_epoch, truncate(str(error), MAX_ERROR_BYTES)
        match error:
            case Fatal():
                fail = Fail(id, epoch, message, fatal=True)
            case RetryAfter():
                fail = Fail(id, epoch, message, retry_after_ms=delay_ms(error.delay))
            case Snooze():
                fail = Fail(id, epoch, message, snooze_ms=delay_ms(error.delay))
            case ProviderError() if self.provider:
                wait = min(delay_ms(error.retry_after), MAX_RETRY_AFTER_MS)
                fail = Fail(id, epoch, message, provider_error={"provider": self.provider, "kind": error.kind, "retry_after_ms": wait})
            case _:
                stack = "".join(traceback.format_exception(error))
                name = type(error).__name__
                fail = Fail(id, epoch, truncate(f"{name}: {error}" if message else name, MAX_ERROR_BYTES), stack=truncate(stack[-MAX_STACK_BYTES:], MAX_STACK_BYTES))
        return Settlement(self, fail=fail, beat=self._unsaved())

    def _returned(self) -> Settlement:
        """Returns the settlement that returns the job to its queue. The attempt does not count."""
        return Settlement(self, fail=Fail(self.id, self._fetched.lease_epoch, "", snooze_ms=0), beat=self._unsaved())
