"""The reminders of one session: the fold of its `schedule/change` events (SPEC 5.3).

A `ReminderState` is owned by one agent and changed in place by `apply`, each change in time
independent of how many reminders there are. An agent without reminders shares one empty value.
A log that is corrupt (SPEC 5.3) folds to a state that says so and holds nothing else.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from whenidle_clock.instants import to_millis
from whenidle_protocol.errors import CorruptLog, ReminderCode, ToolError
from whenidle_protocol.rules import every
from whenidle_protocol.schedule_change import (
    Create,
    Delete,
    Dispatch,
    EveryReminder,
    Reminder,
    decode_change,
)
from whenidle_protocol.seen_ids import SeenIds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from whenidle_protocol.schedule_change import Change

_Entry: TypeAlias = tuple[int, int, Reminder]
_Recurring: TypeAlias = tuple[int, int, EveryReminder]
"""Target in milliseconds, number in creation order, record. The first two decide the order (SPEC 5.8)."""

_SLACK: Final = 16
"""How many outdated entries a heap may hold beyond twice the number of active reminders."""


class ReminderState:
    """Active reminders in creation order, the ids ever used, and what is due first."""

    __slots__ = ("_active", "_created", "_one_shots", "_recurring", "_seen", "corrupt")

    def __init__(self, corrupt: CorruptLog | None = None) -> None:
        self.corrupt: CorruptLog | None = corrupt
        """Why the log cannot be folded, None while it can; then there is nothing else to read here."""
        self._active: dict[str, _Entry] = {}
        self._created = 0
        self._one_shots: list[_Entry] = []
        self._recurring: list[_Recurring] = []
        self._seen = SeenIds()

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, reminder_id: str) -> bool:
        return reminder_id in self._active

    def __iter__(self) -> Iterator[Reminder]:
        """Iterate over the active reminders in creation order."""
        return (entry[2] for entry in self._active.values())

    @property
    def seen(self) -> SeenIds:
        """The ids ever used after the inherited prefix."""
        return self._seen

    def check(self) -> None:
        """Return if the log could be folded.

        Raises:
            ToolError: `corrupt_schedule_log`.
        """
        if self.corrupt is not None:
            raise ToolError(
                ReminderCode.CORRUPT_SCHEDULE_LOG,
                "The reminders of this session cannot be read: its log is corrupt. Nothing was changed; "
                "reminders work again in a new session.",
            )

    def next_id(self) -> str:
        """Return the id a reminder created now gets (SPEC 5.3)."""
        return self._seen.next()

    def earliest_millis(self) -> int | None:
        """Return the earliest target in milliseconds since the epoch, None without active reminders."""
        one_shot, recurring = self._head(self._one_shots), self._head(self._recurring)
        if one_shot is None or recurring is None:
            head = one_shot or recurring
            return None if head is None else head[0]
        return min(one_shot[0], recurring[0])

    def one_shot_due(self, now_millis: int) -> Reminder | None:
        """Return the first one-shot due at `now_millis`, by target and then creation order, or None."""
        head = self._head(self._one_shots)
        return head[2] if head is not None and head[0] <= now_millis else None

    def recurring_due(self, now_millis: int) -> list[EveryReminder]:
        """Return the `every` reminders due at `now_millis`, by target and then creation order."""
        # A node of a heap is not smaller than its parent, so only due nodes and their children are visited.
        heap, due, visit = self._recurring, list[_Recurring](), [0]
        while visit:
            index = visit.pop()
            if index < len(heap) and heap[index][0] <= now_millis:
                visit += (2 * index + 1, 2 * index + 2)
                if self._is_current(heap[index]):
                    due.append(heap[index])
        return [entry[2] for entry in sorted(due, key=_order)]

    def _create(self, record: Reminder) -> None:
        if not self._seen.add(record.id):
            raise CorruptLog(f"schedule/change: creates {record.id!r}, an id that was used before")
        self._created += 1
        self._put(record, self._created)

    def _remove(self, reminder_id: str) -> None:
        del self._active[reminder_id]
        if not self._active:
            # An agent whose reminders are all over gives back what they took.
            self._active, self._one_shots, self._recurring = {}, [], []
        self._tidy(self._one_shots)
        self._tidy(self._recurring)

    def _dispatch(self, record: Reminder, order: int, accepted_at: datetime | None) -> None:
        if not isinstance(record, EveryReminder):
            if accepted_at is not None:
                raise CorruptLog(f"schedule/change: acceptedAt in a dispatch of {record.id!r}, a one-shot")
            self._remove(record.id)
            return
        if accepted_at is None:
            raise CorruptLog(f"schedule/change: no acceptedAt in a dispatch of {record.id!r}, an every")
        if accepted_at < record.scheduled_at:
            raise CorruptLog(f"schedule/change: dispatch of {record.id!r} was accepted before it was due")
        next_at = every.step(record.scheduled_at, record.every_seconds, accepted_at).next_at
        if next_at is None:
            self._remove(record.id)
        else:
            self._put(attrs.evolve(record, scheduled_at=next_at), order)

    def _put(self, record: Reminder, order: int) -> None:
        target = to_millis(record.scheduled_at)
        if isinstance(record, EveryReminder):
            self._active[record.id] = entry = (target, order, record)
            heappush(self._recurring, entry)
            self._tidy(self._recurring)
        else:
            self._active[record.id] = one_shot = (target, order, record)
            heappush(self._one_shots, one_shot)

    def _tidy(self, heap: list[Any]) -> None:
        # Outdated entries stay in place until they are the larger part: constant time a change, on average.
        if len(heap) > 2 * len(self._active) + _SLACK:
            heap[:] = [entry for entry in heap if self._is_current(entry)]
            heapify(heap)

    def _head(self, heap: list[Any]) -> _Entry | None:
        while heap and not self._is_current(heap[0]):
            heappop(heap)
        return heap[0] if heap else None

    def _is_current(self, entry: _Entry) -> bool:
        return self._active.get(entry[2].id) is entry

    def apply(self, change: Change) -> None:
        """Change this state by `change`.

        Raises:
            CorruptLog: the change cannot follow what the state holds; the state is as it was.
        """
        if isinstance(change, Create):
            self._create(change.schedule)
            return
        entry = self._active.get(change.id)
        if entry is None:
            what = "deletes" if isinstance(change, Delete) else "dispatches"
            raise CorruptLog(f"schedule/change: {what} {change.id!r}, which is not active")
        if isinstance(change, Dispatch):
            self._dispatch(entry[2], entry[1], change.accepted_at)
        else:
            self._remove(change.id)


NO_REMINDERS: Final = ReminderState()
"""What every session without a `schedule/change` shares; `apply` never changes it."""


def apply(state: ReminderState, change: Change, *, fixed_rate: bool = True) -> ReminderState:
    """Return `state` with `change` applied: the same object, changed in place, unless it was `NO_REMINDERS`.

    With `fixed_rate` False the log speaks the one-shot protocol alone, in which an `every` record and
    an `acceptedAt` are corrupt (SPEC 5.4).

    Raises:
        CorruptLog: the change cannot follow what the state holds; the state is as it was.
    """
    if state.corrupt is not None:
        return state
    if not fixed_rate:
        _refuse_fixed_rate(change)
    if state is NO_REMINDERS:
        state = ReminderState()
    state.apply(change)
    return state


def fold(
    state: ReminderState, payload: Any, *, seq: int, change: Change | None = None, fixed_rate: bool = True
) -> ReminderState:
    """Return `state` after the `schedule/change` event number `seq` with that payload; `change` is what it says.

    Never raises: a payload that cannot be read or applied gives a state that is `corrupt`, and a
    corrupt state stays what it is.
    """
    try:
        return state if state.corrupt else apply(state, change or decode_change(payload), fixed_rate=fixed_rate)
    except CorruptLog as error:
        return ReminderState(corrupt=error.at(seq))


def _refuse_fixed_rate(change: Change) -> None:
    if isinstance(change, Create) and isinstance(change.schedule, EveryReminder):
        raise CorruptLog("schedule/change: an every reminder, and this host allows one-shots only")
    if isinstance(change, Dispatch) and change.accepted_at is not None:
        raise CorruptLog("schedule/change: acceptedAt, and this host allows one-shots only")


def _order(entry: _Entry) -> tuple[int, int]:
    return entry[:2]
