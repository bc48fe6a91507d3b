import asyncio
import unittest

from code_sous.limits import MAX_SETTLE_JOBS, encode, parts_of, truncate
from code_sous.wait import Backoff, pause


class LimitsTest(unittest.TestCase):
    def test_delays_have_full_jitter_between_the_floor_and_a_bound_that_doubles(self) -> None:
        least, most = Backoff(0.1, 0.5, 0.02, lambda: 0.0), Backoff(0.1, 0.5, 0.02, lambda: 1.0)
        self.assertEqual([least.next() for _ in range(3)], [0.02] * 3)
        self.assertEqual([round(most.next(), 3) for _ in range(5)], [0.1, 0.2, 0.4, 0.5, 0.5])
        most.reset()
        self.assertAlmostEqual(most.next(), 0.1)

    def test_a_text_is_cut_at_a_character(self) -> None:
        self.assertEqual(truncate("aü😀", 3), "aü")
        self.assertEqual(truncate("aü😀", 6), "aü")
        self.assertEqual(truncate("aü😀", 7), "aü😀")
        self.assertEqual(truncate("a\ud800", 10), "a?")

    def test_values_without_json_and_large_ones_are_refused(self) -> None:
        self.assertEqual(encode("result", ["ü"], 6), '["ü"]'.encode())
        with self.assertRaises(ValueError):
            encode("result", ["ü"], 5)
        with self.assertRaises(TypeError):
            encode("result", object(), 100)

    def test_items_are_divided_by_their_number_and_size(self) -> None:
        def sizes(items: list[int], most: int) -> list[int]:
            return [len(part) for part in parts_of(items, most, lambda n: n)]

        self.assertEqual(sizes([], 1000), [])
        self.assertEqual(sizes([100, 100, 5000, 100], 900), [2, 1, 1])
        self.assertEqual(sizes([0] * (MAX_SETTLE_JOBS + 1), 1 << 30), [MAX_SETTLE_JOBS, 1])


class WaitTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_pause_ends_with_its_time_and_with_its_event(self) -> None:
        event = asyncio.Event()
        await pause(0.001, event)
        event.set()
        await pause(600, event)


if __name__ == "__main__":
    unittest.main()
