"""How long to wait before something that failed is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from random import Random

FIRST_WAIT = 0.1
"""Seconds: a disk that was full for a moment, or a lock held by another process, is often free again by then."""
LONGEST_WAIT = 30.0
"""Seconds: nobody who has made room should wait much longer for what was due."""


class Patience:
    """Waits that double from one failure to the next, with jitter so that many do not retry at once."""

    __slots__ = ("_random", "_wait")

    def __init__(self, random: Random) -> None:
        self._random = random
        self._wait = FIRST_WAIT

    def reset(self) -> None:
        """Begin again with the first wait, after a success."""
        self._wait = FIRST_WAIT

    async def wait(self) -> None:
        """Wait in monotonic time; cancelling ends the wait."""
        wait = self._wait * self._random.uniform(0.5, 1.0)
        self._wait = min(2 * self._wait, LONGEST_WAIT)
        await trio.sleep(wait)
