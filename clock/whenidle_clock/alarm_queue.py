"""Many keys, each with one target, taken out in order of target.

Targets lie in buckets of a few seconds by their leading bits. A bucket is a plain dict until its
time comes; then it is sorted once, and is a heap from there on, so that later arrivals find their
place. Arming and disarming a key in a bucket that is not open yet are dict operations: what is
re-armed before it comes due is never sorted and leaves nothing behind.

Opening a bucket is the one step that is not short: ten thousand targets within the same seconds take two to
three milliseconds, and a million about one second.
"""

import heapq
import itertools
from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)

_BUCKET_BITS = 14  # 16.4 s; measured with a million targets spread over a second, a day and a year
_STALE_FLOOR = 64  # below this many, stale entries are not worth a sweep


@attrs.define
class _OpenBucket(Generic[K]):
    """A bucket in order: its heap may hold entries that are no longer in `live`."""

    live: dict[K, tuple[int, int, K]]
    heap: list[tuple[int, int, K]]


class AlarmQueue(Generic[K]):
    """Keys by target in milliseconds, then by order of arming. Every operation is O(log n) amortised."""

    def __init__(self) -> None:
        self._targets: dict[K, int] = {}
        # Targets by key in order of arming, by bucket number. No bucket is empty, open or closed.
        self._closed: dict[int, dict[K, int]] = {}
        self._open: dict[int, _OpenBucket[K]] = {}
        # The heap of bucket numbers, and of some numbers whose bucket is gone.
        self._numbers: list[int] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._targets)

    def target(self, key: K) -> int | None:
        """Give the key's target, None if it is not armed."""
        return self._targets.get(key)

    def arm(self, key: K, target: int) -> bool:
        """Set the key's target in place of any it has; tell whether it had one."""
        known = key in self._targets and self.disarm(key)
        self._targets[key] = target
        number = target >> _BUCKET_BITS
        closed = self._closed.get(number)
        if closed is not None:
            closed[key] = target
        elif number in self._open:
            bucket = self._open[number]
            bucket.live[key] = entry = (target, next(self._order), key)
            heapq.heappush(bucket.heap, entry)
        else:
            self._closed[number] = {key: target}
            heapq.heappush(self._numbers, number)
        return known

    def disarm(self, key: K) -> bool:
        """Take the key out; tell whether it was in."""
        target = self._targets.pop(key, None)
        if target is None:
            return False
        number = target >> _BUCKET_BITS
        closed = self._closed.get(number)
        if closed is not None:
            del closed[key]
            if not closed:
                del self._closed[number]
                self._sweep_numbers()
        else:
            self._drop_open(number, key)
        return True

    def earliest(self) -> int | None:
        """Give the earliest target, None if no key is armed."""
        bucket = self._front()
        return bucket.heap[0][0] if bucket else None

    def take_due(self, now: int, limit: int) -> list[K]:
        """Take out up to `limit` keys whose target is `now` or earlier, in order."""
        due: list[K] = []
        while len(due) < limit:
            bucket = self._front()
            if bucket is None or bucket.heap[0][0] > now:
                break
            number = bucket.heap[0][0] >> _BUCKET_BITS
            self._take_from(bucket, now, limit, due)
            if not bucket.live:
                del self._open[number]
                self._sweep_numbers()
        return due

    def count_stale(self) -> int:
        """Count the entries held for what is gone: at most one and a half as many as for what is not.

        To that come a few dozen for each open bucket.
        """
        numbers = len(self._numbers) - len(self._closed) - len(self._open)
        return numbers + sum(len(bucket.heap) - len(bucket.live) for bucket in self._open.values())

    def _take_from(self, bucket: _OpenBucket[K], now: int, limit: int, due: list[K]) -> None:
        heap, live, targets = bucket.heap, bucket.live, self._targets
        while heap and heap[0][0] <= now and len(due) < limit:
            entry = heapq.heappop(heap)
            key = entry[2]
            if live.get(key) is entry:
                del live[key], targets[key]
                due.append(key)

    def _front(self) -> _OpenBucket[K] | None:
        """Give the earliest bucket, open and with a live entry at its head; None if there is none."""
        while self._numbers:
            number = self._numbers[0]
            bucket = self._open.get(number)
            if bucket is not None:
                while bucket.live.get(bucket.heap[0][2]) is not bucket.heap[0]:
                    heapq.heappop(bucket.heap)
                return bucket
            if number in self._closed:
                self._open_bucket(number)
            else:
                heapq.heappop(self._numbers)
        return None

    def _open_bucket(self, number: int) -> None:
        closed = self._closed.pop(number)
        # The sort is stable and the dict is in order of arming; a sorted list is a heap.
        heap = [(closed[key], next(self._order), key) for key in sorted(closed, key=closed.__getitem__)]
        self._open[number] = _OpenBucket({entry[2]: entry for entry in heap}, heap)

    def _drop_open(self, number: int, key: K) -> None:
        bucket = self._open[number]
        del bucket.live[key]
        if not bucket.live:
            del self._open[number]
            self._sweep_numbers()
        elif len(bucket.heap) > 2 * len(bucket.live) + _STALE_FLOOR:
            bucket.heap = sorted(bucket.live.values())

    def _sweep_numbers(self) -> None:
        buckets = len(self._closed) + len(self._open)
        if len(self._numbers) > 2 * buckets + _STALE_FLOOR:
            self._numbers = [*self._closed, *self._open]
            heapq.heapify(self._numbers)
