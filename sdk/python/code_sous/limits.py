"""The limits of the server, as in docs/limits.md, and the values that keep to them."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

MAX_SETTLE_JOBS = 1000
MAX_FETCH_JOBS = 1000
MAX_FETCH_QUEUES = 64
MAX_FETCH_WAIT = 60.0
MIN_LEASE = 1.0
MAX_LEASE = 12 * 60 * 60.0
MAX_DELAY_MS = 30 * 24 * 60 * 60 * 1000
MAX_RESULT_BYTES = 1 << 20
MAX_CHECKPOINT_BYTES = 256 << 10
MAX_PROGRESS_MESSAGE = 1024
MAX_ERROR_BYTES = 64 << 10
MAX_STACK_BYTES = 8 << 10
MAX_RETRY_AFTER_MS = 600_000

Item = TypeVar("Item")


def encode(what: str, value: object, limit: int) -> bytes:
    """Returns the JSON of a value. Raises TypeError or ValueError if it has none, or more than ``limit`` bytes of it."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode(errors="replace")
    if len(encoded) > limit:
        raise ValueError(f"{what}: got {len(encoded)} bytes of JSON, want at most {limit}")
    return encoded


def truncate(text: str, limit: int) -> str:
    """Returns the text in valid UTF-8, and at most ``limit`` bytes of it."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")


def delay_ms(seconds: float) -> int:
    """Returns a delay that the server accepts, in milliseconds."""
    return min(max(0, round(seconds * 1000)), MAX_DELAY_MS)


def parts_of(items: Sequence[Item], most: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yields the items in parts of at most MAX_SETTLE_JOBS items and about ``most`` bytes. An item that exceeds
    the bound has a part of its own."""
    overhead = 300  # bytes of an item without its variable fields
    part: list[Item] = []
    total = 0
    for item in items:
        more = overhead + size(item)
        if part and (len(part) == MAX_SETTLE_JOBS or total + more > most):
            yield part
            part, total = [], 0
        part.append(item)
        total += more
    if part:
        yield part
