"""A host-wide task: what is kept of it (SPEC 6.3)."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypedDict

import attrs
from attrs import field

from whenidle_clock.instants import MAX_INSTANT
from whenidle_clock.zones import Gap, Overlap  # noqa: TC001 - `wire` resolves the fields' types
from whenidle_protocol.rules.kinds import Rule  # noqa: TC001 - the same
from whenidle_protocol.task_ids import MAX_TASK_ID, is_task_id
from whenidle_protocol.white_space import trim

_MILLISECOND = timedelta(milliseconds=1)


class TaskStatus(StrEnum):
    """Whether a task comes due."""

    ACTIVE = "active"
    """It has a next occurrence."""
    PAUSED = "paused"
    """Somebody paused it: nothing comes due and nothing accumulates."""
    ENDED = "ended"
    """Its rule has no further occurrence."""


class TargetKind(StrEnum):
    """Which session a task is delivered to (SPEC 6.8)."""

    THIS_SESSION = "this_session"
    """The session that chose this target."""
    NEW_ONCE = "new_once"
    """One new session, reserved when the target is chosen and created at the first delivery."""
    NEW = "new"
    """A new session for each delivery."""


def _known_unless_new(target: Target, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if (value is None) != (target.kind is TargetKind.NEW):
        raise ValueError(f"{attribute.name} must be given for this_session and new_once, and only there")


@attrs.frozen
class Target:
    """Where a task is delivered.

    Raises:
        ValueError: `session_id` is missing where the kind has one, or given where it has none.
    """

    kind: TargetKind
    session_id: str | None = field(default=None, validator=_known_unless_new)
    """The session, existing or reserved; None for `new`."""
    cwd: str = ""
    """Working directory of the sessions it creates, as the chooser's was."""
    preset: str = ""
    """Preset of the sessions it creates, as the chooser's was."""
    created: bool = False
    """Whether the session reserved by `new_once` has been created."""


@attrs.frozen
class LastDelivery:
    """The latest delivery of a task."""

    scheduled_at: datetime
    """The occurrence that was delivered."""
    delivered_at: datetime
    """When its message entered the inbox."""
    target_session_id: str


@attrs.frozen
class LastFailure:
    """The latest delivery that could not be made; it stays beside any later success."""

    scheduled_at: datetime
    """The occurrence that was to be delivered."""
    failed_at: datetime
    target_session_id: str
    reason: str
    """One sentence for people."""


_NOT_NEGATIVE = ("catch_up_seconds", "deliveries", "missed", "skipped", "failures")


@attrs.frozen(slots=False)  # without slots one is made in half the time, and few are in memory at once
class Task:
    """A task between two changes. Instants are UTC, whole milliseconds.

    Raises:
        ValueError: the id cannot name a task, title or prompt is empty or not trimmed, or a number is below 0.
    """

    id: str
    title: str
    prompt: str
    rule: Rule
    target: Target
    status: TaskStatus
    scheduled_at: datetime
    """The next occurrence, committed; of a paused task the one it was paused before, of an ended one its last."""
    created_at: datetime
    updated_at: datetime
    """Increases strictly with each change, so that it serves as a version (SPEC 6.5)."""
    creator: str
    """The session that created it; empty for the host's own API."""
    gap: Gap | None = None
    """What the rule does with local times that clocks skip; None for what the host says (SPEC 1.6)."""
    overlap: Overlap | None = None
    """What it does with local times that clocks show twice; None for what the host says."""
    catch_up_seconds: int | None = None
    """How late an occurrence may be delivered; None for what the host says (SPEC 6.7)."""
    deliveries: int = 0
    """How many occurrences were delivered, runs by hand included."""
    missed: int = 0
    """How many were coalesced into a later one."""
    skipped: int = 0
    """How many were too late for the catch-up window."""
    failures: int = 0
    """How many could not be delivered because the target session is gone."""
    covered_at: datetime | None = None
    """The latest occurrence of the present rule that was decided about: it never comes due again."""
    last_delivery: LastDelivery | None = None
    last_failure: LastFailure | None = None

    def __attrs_post_init__(self) -> None:
        # In one place rather than a validator a field: each delivery reads a task.
        if not is_task_id(self.id):
            raise ValueError(f"id is not 1 to {MAX_TASK_ID} of A-Z a-z 0-9 . _ : - without a leading dot")
        for name, text in (("title", self.title), ("prompt", self.prompt)):
            if not text or trim(text) != text:
                raise ValueError(f"{name} is empty or has white space around it")
        if min(self.catch_up_seconds or 0, self.deliveries, self.missed, self.skipped, self.failures) < 0:
            name = next(name for name in _NOT_NEGATIVE if (getattr(self, name) or 0) < 0)
            raise ValueError(f"{name} is {getattr(self, name)}, below 0")

    @property
    def active(self) -> bool:
        """Whether it comes due."""
        return self.status is TaskStatus.ACTIVE

    @property
    def next_at(self) -> datetime | None:
        """When it comes due next; None unless it is active."""
        return self.scheduled_at if self.active else None


class Progress(TypedDict):
    """What a decision about an occurrence makes of a task; see the fields of `Task`."""

    target: Target
    status: TaskStatus
    scheduled_at: datetime
    updated_at: datetime
    deliveries: int
    missed: int
    skipped: int
    covered_at: datetime
    last_delivery: LastDelivery | None


def moved_on(task: Task, progress: Progress) -> Task:
    """Return `task` after a decision: what `attrs.evolve` returns, in a sixth of the time.

    What cannot change is not checked again, and counters only grow.
    """
    after = object.__new__(Task)
    fields = vars(after)
    fields.update(vars(task))
    fields.update(progress)
    return after


def stamp(previous: datetime, now: datetime) -> datetime:
    """Return the `updated_at` of a change at `now` to a task last changed at `previous` (SPEC 6.5).

    It is later than `previous` even if the wall clock went back. Only at the very last instant of the
    year 9999 there is no later one.
    """
    if previous < now:
        return now
    return previous + _MILLISECOND if previous < MAX_INSTANT else previous
