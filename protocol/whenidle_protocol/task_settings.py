"""What a host decides for all its tasks, and what a decision is told of its caller (SPEC 6)."""

from __future__ import annotations

from typing import Final

import attrs

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.task_choices import to_gap, to_overlap, whole_number
from whenidle_protocol.tools import MAX_PROMPT_BYTES

MIN_SPACING_SECONDS: Final = 60
"""No rule comes due more often (SPEC 6.6)."""


@attrs.frozen
class TaskSettings:
    """The choices of a host; the defaults are those of the contract.

    Raises:
        ValueError: a bound is no whole number or below 0, the spacing is below one minute, or there is no such policy.
    """

    gap: Gap = attrs.field(default=Gap.SKIP, converter=to_gap)
    """What recurring rules do with local times that clocks skip (SPEC 1.6)."""
    overlap: Overlap | None = attrs.field(default=None, converter=to_overlap)
    """What they do with local times that clocks show twice; None for the default of their frequency (SPEC 6.6)."""
    catch_up_seconds: int | None = attrs.field(default=None, validator=whole_number(0))
    """How late an occurrence of a recurring task may be delivered; None for no bound (SPEC 6.7)."""
    spacing_seconds: int = attrs.field(default=MIN_SPACING_SECONDS, validator=whole_number(MIN_SPACING_SECONDS))
    """How far apart the occurrences of a task with the target `new` must be (SPEC 6.6)."""
    max_active: int | None = attrs.field(default=None, validator=whole_number(0))
    """How many tasks of the host may be active; None for no bound (SPEC 6.9)."""
    max_active_per_session: int | None = attrs.field(default=None, validator=whole_number(0))
    """How many tasks created by one session may be active; None for no bound (SPEC 6.9)."""
    max_prompt_bytes: int = attrs.field(default=MAX_PROMPT_BYTES, validator=whole_number(1))
    """The longest prompt, in bytes of UTF-8."""


@attrs.frozen
class Caller:
    """The session whose agent calls a tool."""

    session_id: str
    delegation_depth: int = 0
    cwd: str = ""
    preset: str = ""


@attrs.frozen
class ActiveCounts:
    """How many tasks are active at the moment of a decision."""

    host: int = 0
    """Of the host."""
    creator: int = 0
    """Of those, created by the session that created, or is about to create, the task in question."""
