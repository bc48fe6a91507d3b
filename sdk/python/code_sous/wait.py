"""Waits that end with an event, and the delays before repeats."""

import asyncio
import random
from collections.abc import Callable


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Waits until the time is over or the event is set."""
    try:
        async with asyncio.timeout(seconds):
            await until.wait()
    except TimeoutError:
        pass


class Backoff:
    """Delays that grow, with full jitter between a floor and a bound that doubles. The floor keeps a loop
    from being busy, however often it fails."""

    def __init__(self, first: float, most: float, floor: float = 0.02, rand: Callable[[], float] = random.random) -> None:
        self._first, self._most, self._floor, self._rand = first, most, floor, rand
        self._bound = first

    def reset(self) -> None:
        self._bound = self._first

    def next(self) -> float:
        """Returns the next delay in seconds: random from the floor to the bound."""
        delay = self._floor + self._rand() * max(0.0, self._bound - self._floor)
        self._bound = min(2 * self._bound, self._most)
        return delay
