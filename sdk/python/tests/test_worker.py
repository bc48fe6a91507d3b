import asyncio
import threading
import unittest
from typing import Any

from code_sous import Aborted, ApiError, Event, Fatal, Handler, Job, RetryAfter, Snooze, Worker
from tests.fake import FakeSource


class Running:
    """A worker that runs until so many events of a kind have come."""

    def __init__(self, source: FakeSource, handler: Handler, **options: Any) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()
        self.worker = Worker(source, on_event=self._note, **options)
        self.worker.handle("q", handler)
        self._ended = asyncio.create_task(self.worker.run())

    def _note(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def until(self, n: int, kind: str) -> None:
        while sum(e.kind == kind for e in self.events) < n:
            self._changed.clear()
            await self._changed.wait()

    async def stop(self) -> None:
        self.worker.stop()
        await self._ended


class WorkerTest(unittest.IsolatedAsyncioTestCase):
    async def test_results_and_errors_settle_jobs(self) -> None:
        source = FakeSource("value", "nothing", "fatal", "retry", "snooze", "throws", "nan")

        async def handler(job: Job) -> object:
            match job.payload:
                case "value":
                    return {"n": 1}
                case "fatal":
                    raise Fatal("f")
                case "retry":
                    raise RetryAfter(-5, "r")
                case "snooze":
                    raise Snooze(1e12)
                case "throws":
                    raise TypeError("t" * 70_000)
                case "nan":
                    return float("nan")
            return None

        running = Running(source, handler)
        await running.until(4, "failed")
        await running.stop()
        self.assertTrue(source.closed)
        self.assertEqual([(a.id, a.result) for a in sum(source.acks, [])], [("value", b'{"n":1}'), ("nothing", None)])
        fails = {f.id: f for f in sum(source.fails, [])}
        self.assertTrue(fails["fatal"].fatal)
        self.assertEqual(fails["retry"].retry_after_ms, 0)
        self.assertEqual(fails["snooze"].snooze_ms, 30 * 24 * 60 * 60 * 1000)
        self.assertEqual(len(fails["throws"].error), 64 << 10)
        self.assertLessEqual(len(fails["throws"].stack), 8 << 10)
        self.assertIn("Out of range float", fails["nan"].error)

    async def test_jobs_that_end_during_a_call_are_one_group(self) -> None:
        source = FakeSource(*range(50))

        async def handler(job: Job) -> None:
            pass

        running = Running(source, handler, concurrency=50)
        await running.until(50, "completed")
        await running.stop()
        self.assertEqual(len(sum(source.acks, [])), 50)
        self.assertLess(len(source.acks), 10)

    async def test_concurrency_bounds_handlers_and_fetches(self) -> None:
        source = FakeSource(*range(20))
        now = most = 0

        async def handler(job: Job) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

        running = Running(source, handler, concurrency=3, ahead=2)
        await running.until(20, "completed")
        await running.stop()
        self.assertEqual(most, 3)
        self.assertLessEqual(max(r.count for r in source.requests), 5)

    async def test_functions_run_in_threads_and_are_told_to_stop(self) -> None:
        source = FakeSource("a")
        threads: list[int] = []

        def handler(job: Job) -> None:
            threads.append(threading.get_ident())
            job.keep({"page": 2})
            job.sleep(600)

        running = Running(source, handler, stop_timeout=0.0)
        await running.until(1, "started")
        await running.stop()
        self.assertNotIn(threading.get_ident(), threads)
        self.assertEqual([(f.id, f.snooze_ms) for f in sum(source.fails, [])], [("a", 0)])
        self.assertEqual([b.checkpoint for b in source.beats], [b'{"page":2}'])

    async def test_a_call_without_an_answer_is_repeated(self) -> None:
        source = FakeSource("a")
        calls = 0

        def answer(verb: str, id: str) -> dict[str, Any]:
            nonlocal calls
            calls += verb == "ack"
            if verb == "ack" and calls < 3:
                raise ConnectionError("no answer")
            return {}

        async def handler(job: Job) -> None:
            pass

        source.answer = answer
        running = Running(source, handler)
        with self.assertLogs("code_sous", "WARNING"):
            await running.until(2, "warning")
            await running.stop()
        self.assertEqual((calls, len(source.acks)), (3, 1))

    async def test_an_attempt_whose_result_is_refused_fails(self) -> None:
        source = FakeSource("a")
        source.answer = lambda verb, id: {"ok": False, "code": "CS_VALIDATION_JOB_RESULT", "message": "no match"} if verb == "ack" else {}

        async def handler(job: Job) -> int:
            return 1

        running = Running(source, handler)
        await running.until(1, "completed")
        await running.stop()
        self.assertIn("CS_VALIDATION_JOB_RESULT: the ack was refused: no match", source.fails[0][0].error)

    async def test_a_lost_lease_cancels_the_handler_and_drops_its_result(self) -> None:
        source = FakeSource("a")
        source.answer = lambda verb, id: {"ok": False, "code": "CS_JOB_LEASE_LOST"} if verb == "heartbeat" else {}
        reasons: list[object] = []

        async def handler(job: Job) -> str:
            try:
                await job.heartbeat()
                await asyncio.Event().wait()
            except (Aborted, asyncio.CancelledError):
                reasons.append(job.aborted)
            return "late"

        running = Running(source, handler)
        await running.until(1, "dropped")
        await running.stop()
        self.assertEqual((reasons, source.acks, source.fails), (["lease lost"], [], []))

    async def test_a_job_that_arrives_again_has_its_earlier_handler_cancelled(self) -> None:
        source = FakeSource()
        source.offer("a", epoch=1)

        async def handler(job: Job) -> None:
            if job.fetched.lease_epoch == 1:
                source.offer("a", epoch=2)
                await asyncio.Event().wait()

        running = Running(source, handler)
        await running.until(1, "dropped")
        await running.until(1, "completed")
        await running.stop()
        self.assertEqual([a.lease_epoch for a in sum(source.acks, [])], [2])

    async def test_a_stop_returns_jobs(self) -> None:
        source = FakeSource("a", "b")

        async def handler(job: Job) -> None:
            job.keep({"page": 2})
            await asyncio.Event().wait()

        running = Running(source, handler, concurrency=1, stop_timeout=0.01)
        await running.until(1, "started")
        await running.stop()
        self.assertEqual(sorted((f.id, f.snooze_ms) for f in sum(source.fails, [])), [("a", 0), ("b", 0)])
        self.assertEqual([(b.id, b.checkpoint) for b in source.beats], [("a", b'{"page":2}')])

    async def test_a_key_that_is_refused_ends_the_worker(self) -> None:
        def answer(verb: str, id: str) -> dict[str, Any]:
            raise ApiError("CS_AUTHN_INVALID", "the key is unknown", status=401)

        source = FakeSource()
        source.answer = answer
        worker = Worker(source)
        worker.handle("q", print)
        with self.assertRaisesRegex(ApiError, "CS_AUTHN_INVALID"):
            await worker.run()

    async def test_bad_settings_are_refused(self) -> None:
        for options in ({"concurrency": 0}, {"lease": 0.9}, {"wait": 61.0}):
            with self.assertRaises(ValueError):
                Worker(FakeSource(), **options)  # type: ignore[arg-type]
        with self.assertRaises(ValueError):
            Worker(FakeSource()).handle("fn.hello", print)
        with self.assertRaises(ValueError):
            await Worker(FakeSource()).run()


if __name__ == "__main__":
    unittest.main()
