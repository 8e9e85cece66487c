"""Well-formed calls of the task tools; the host's own API makes the same requests (SPEC 6.2 to 6.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from whenidle_protocol.task_choices import to_gap_or_none, to_overlap, whole_number
from whenidle_protocol.task_record import TargetKind

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_clock.zones import Gap, Overlap
    from whenidle_protocol.rules.kinds import Rule

MAX_TITLE: Final = 120
"""Characters of a title (SPEC 6.2)."""
DEFAULT_LIMIT: Final = 100
"""How many tasks a page of a list has unless the caller says (SPEC 6.4)."""
MAX_LIMIT: Final = 500
"""How many it may have."""


@attrs.frozen
class CreateTask:
    """A task to be made. What a tool cannot say follows the host's choice.

    Raises:
        ValueError: `catch_up_seconds` is no whole number or below 0, or there is no such target or policy.
    """

    title: str
    prompt: str
    rule: Rule
    target: TargetKind = attrs.field(converter=TargetKind)
    gap: Gap | None = attrs.field(default=None, converter=to_gap_or_none)
    overlap: Overlap | None = attrs.field(default=None, converter=to_overlap)
    catch_up_seconds: int | None = attrs.field(default=None, validator=whole_number(0))


@attrs.frozen
class ListTasks:
    """A page of tasks: all, the active ones, or the others."""

    active: bool | None = None
    limit: int = DEFAULT_LIMIT
    offset: int = 0


@attrs.frozen
class ViewTask:
    """One task to be shown."""

    id: str


@attrs.frozen
class UpdateTask:
    """A change of one task; None leaves a field as it is.

    Raises:
        ValueError: there is no such target.
    """

    id: str
    title: str | None = None
    prompt: str | None = None
    rule: Rule | None = None
    target: TargetKind | None = attrs.field(default=None, converter=attrs.converters.optional(TargetKind))
    active: bool | None = None
    expected_updated_at: datetime | None = None
    """The change is refused if the task has another `updated_at`."""


@attrs.frozen
class DeleteTask:
    """One task to be deleted."""

    id: str
    expected_updated_at: datetime | None = None


TaskRequest: TypeAlias = CreateTask | ListTasks | ViewTask | UpdateTask | DeleteTask
