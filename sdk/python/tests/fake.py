"""A source in memory that hands out jobs once and records how they are settled."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from code_sous import Ack, Fail, FetchedJob, FetchRequest, Heartbeat, Outcome


class FakeSource:
    def __init__(self, *payloads: Any) -> None:
        self.acks: list[list[Ack]] = []
        self.fails: list[list[Fail]] = []
        self.beats: list[Heartbeat] = []
        self.requests: list[FetchRequest] = []
        self.closed = False
        self.answer: Callable[[str, str], dict[str, Any]] = lambda verb, id: {}
        """Returns what differs in the outcome of a call; raises to let the call fail."""
        self._waiting: list[FetchedJob] = []
        self._arrived = asyncio.Event()
        for payload in payloads:
            self.offer(str(payload), payload=payload)

    def offer(self, id: str, payload: Any = None, epoch: int = 1) -> None:
        self._waiting.append(FetchedJob(id, "default", "q", payload, 1, 4, epoch, 0, 0))
        self._arrived.set()

    async def fetch(self, request: FetchRequest, stop: asyncio.Event) -> list[FetchedJob]:
        self.requests.append(request)
        self.answer("fetch", "")
        if not self._waiting:
            self._arrived.clear()
            waits = [asyncio.create_task(self._arrived.wait()), asyncio.create_task(stop.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
        jobs, self._waiting = self._waiting[: request.count], self._waiting[request.count :]
        return jobs

    async def ack(self, acks: Sequence[Ack]) -> list[Outcome]:
        outcomes = [self._outcome("ack", a.id) for a in acks]
        self.acks.append(list(acks))
        return outcomes

    async def fail(self, fails: Sequence[Fail]) -> list[Outcome]:
        outcomes = [self._outcome("fail", f.id) for f in fails]
        self.fails.append(list(fails))
        return outcomes

    async def heartbeat(self, worker_id: str, beats: Sequence[Heartbeat]) -> list[Outcome]:
        outcomes = [self._outcome("heartbeat", b.id) for b in beats]
        self.beats.extend(beats)
        return outcomes

    async def close(self) -> None:
        self.closed = True

    def _outcome(self, verb: str, id: str) -> Outcome:
        return replace(Outcome(id, True), **self.answer(verb, id))
