"""Which reminder ids a log has ever used, in little memory (SPEC 5.3).

Ids are normally `schedule-1`, `schedule-2`, … without holes, so one number stands for all of them
and a session that made a hundred thousand reminders costs no more than one that made three
(CASES 38). Other ids, from a fork or another writer, are kept one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "schedule-"


class SeenIds:
    """A growing set of ids; owned by one fold, changed in place."""

    __slots__ = ("_candidate", "_dense", "_others")

    def __init__(self) -> None:
        self._dense = 0  # schedule-1 to schedule-dense are all in the set
        self._others: dict[str, None] = {}  # as a set: nearly always empty, and then a quarter of a set's size
        self._candidate = 1  # no smaller number can be the next: it only ever grows

    def __len__(self) -> int:
        return self._dense + len(self._others)

    def __contains__(self, reminder_id: str) -> bool:
        if reminder_id in self._others:
            return True
        number = reminder_id.removeprefix(_PREFIX)
        # A number longer than the count's cannot be small; int() of hostile digits is not cheap.
        if number == reminder_id or len(number) > len(str(self._dense)) or not (number.isascii() and number.isdigit()):
            return False
        return number[0] != "0" and int(number) <= self._dense

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids, in no promised order."""
        yield from (f"{_PREFIX}{number}" for number in range(1, self._dense + 1))
        yield from self._others

    def add(self, reminder_id: str) -> bool:
        """Put `reminder_id` into the set, and tell whether it was not there."""
        if reminder_id in self:
            return False
        if reminder_id != f"{_PREFIX}{self._dense + 1}":
            self._others[reminder_id] = None
            return True
        self._dense += 1
        while self._others.pop(f"{_PREFIX}{self._dense + 1}", self) is None:
            self._dense += 1
        return True

    def next(self) -> str:
        """Return the id to allocate: the smallest number above the count of used ids that is free."""
        self._candidate = max(self._candidate, len(self) + 1)
        while (free := f"{_PREFIX}{self._candidate}") in self:
            self._candidate += 1
        return free
