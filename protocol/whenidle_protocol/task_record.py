"""A host-wide task: what is kept of it (SPEC 6.3)."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

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


def _not_negative(_: Any, attribute: attrs.Attribute[Any], value: int | None) -> None:
    if value is not None and value < 0:
        raise ValueError(f"{attribute.name} is {value}, below 0")


def _trimmed(_: Any, attribute: attrs.Attribute[str], value: str) -> None:
    if not value or trim(value) != value:
        raise ValueError(f"{attribute.name} is empty or has white space around it")


def _task_id(_: Any, attribute: attrs.Attribute[str], value: str) -> None:
    if not is_task_id(value):
        raise ValueError(f"{attribute.name} is not 1 to {MAX_TASK_ID} of A-Z a-z 0-9 . _ : - without a leading dot")


@attrs.frozen
class Task:
    """A task between two changes. Instants are UTC, whole milliseconds."""

    id: str = field(validator=_task_id)
    title: str = field(validator=_trimmed)
    prompt: str = field(validator=_trimmed)
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
    catch_up_seconds: int | None = field(default=None, validator=_not_negative)
    """How late an occurrence may be delivered; None for what the host says (SPEC 6.7)."""
    deliveries: int = field(default=0, validator=_not_negative)
    """How many occurrences were delivered, runs by hand included."""
    missed: int = field(default=0, validator=_not_negative)
    """How many were coalesced into a later one."""
    skipped: int = field(default=0, validator=_not_negative)
    """How many were too late for the catch-up window."""
    failures: int = field(default=0, validator=_not_negative)
    """How many could not be delivered because the target session is gone."""
    covered_at: datetime | None = None
    """The latest occurrence of the present rule that was decided about: it never comes due again."""
    last_delivery: LastDelivery | None = None
    last_failure: LastFailure | None = None

    @property
    def active(self) -> bool:
        """Whether it comes due."""
        return self.status is TaskStatus.ACTIVE

    @property
    def next_at(self) -> datetime | None:
        """When it comes due next; None unless it is active."""
        return self.scheduled_at if self.active else None


def stamp(previous: datetime, now: datetime) -> datetime:
    """Return the `updated_at` of a change at `now` to a task last changed at `previous` (SPEC 6.5).

    It is later than `previous` even if the wall clock went back. Only at the very last instant of the
    year 9999 there is no later one.
    """
    return max(now, previous + _MILLISECOND) if previous < MAX_INSTANT else previous
