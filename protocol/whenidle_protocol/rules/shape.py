"""What the seven kinds of rules have in common (SPEC 6.3, 6.7)."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol

import attrs

from whenidle_clock.zones import Gap, Overlap, UnknownZone, load_zone
from whenidle_protocol.errors import ReminderCode
from whenidle_protocol.recurrence.failures import RuleError, quoted
from whenidle_protocol.recurrence.occurrences import Occurrence, occurrences_after
from whenidle_protocol.recurrence.seconds import utc_at, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from whenidle_protocol.recurrence.timeline import Timeline


@attrs.frozen
class CatchUp:
    """What a moment of decision makes of a rule whose target is due (SPEC 6.7)."""

    occurrence_at: datetime
    """The latest occurrence that is due, in UTC."""
    next_at: datetime | None
    """The first occurrence after the decision; None when there is none."""
    missed: int
    """How many earlier occurrences, the target among them, the delivered one stands for; 0 for a punctual one."""


class Rule(Protocol):
    """When something comes due. All instants are UTC, all methods are pure.

    `gap` and `overlap` say what becomes of local times that clocks skip or show twice (SPEC 1.6). Left out,
    skipped times have no occurrence, and of two equal times the first counts, unless the rule's own
    description says otherwise. Kinds without a zone ignore both.
    """

    kind: ClassVar[str]
    """The name of the kind on the wire."""

    @property
    def time_zone(self) -> str:
        """The zone whose local time the rule is in; `UTC` for kinds without one."""
        ...

    def first(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the first occurrence of a rule that is made at `after`; None if there is none."""
        ...

    def next(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the first occurrence strictly later than `after`; None if there is none before the year 10000."""
        ...

    def latest(
        self, target: datetime, now: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> CatchUp:
        """Return what is due at `now` of a rule whose next occurrence was settled to be `target`.

        The target itself is due even if zone data or policies have changed since it was settled (SPEC 1.6).

        Raises:
            ValueError: nothing is due, `now` lies before `target`.
        """
        ...

    def preview(
        self, after: datetime, count: int, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> tuple[Occurrence, ...]:
        """Return the first `count` occurrences later than `after`, fewer where the rule ends."""
        ...


@attrs.frozen
class LocalRule(ABC):
    """A rule in the local time of a zone; subclasses say which local times."""

    _timelines: dict[tuple[Gap, Overlap], Timeline] = attrs.field(
        factory=dict[tuple[Gap, Overlap], "Timeline"], init=False, eq=False, repr=False
    )

    _caught_up: dict[Timeline, tuple[int, datetime, CatchUp]] = attrs.field(
        factory=dict["Timeline", "tuple[int, datetime, CatchUp]"], init=False, eq=False, repr=False
    )
    """The last answer of `latest`, with the second and the target that were asked about."""

    @property
    @abstractmethod
    def default_overlap(self) -> Overlap:
        """What becomes of local times that clocks show twice, unless the caller says."""

    @abstractmethod
    def make_timeline(self, gap: Gap, overlap: Overlap) -> Timeline:
        """Return the occurrences under these policies."""

    def timeline(self, gap: Gap | None = None, overlap: Overlap | None = None) -> Timeline:
        """Return the occurrences under these policies, made once."""
        key = gap or Gap.SKIP, overlap or self.default_overlap
        found = self._timelines.get(key)
        if found is None:
            found = self._timelines[key] = self.make_timeline(*key)
        return found

    def first(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the first occurrence strictly later than `after`: when such a rule is made changes nothing."""
        return self.next(after, gap=gap, overlap=overlap)

    def next(self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None) -> datetime | None:
        """Return the first occurrence strictly later than `after`."""
        found = self.timeline(gap, overlap).first(utc_second(after) + 1)
        return None if found is None else utc_at(found)

    def latest(
        self, target: datetime, now: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> CatchUp:
        """Return what is due at `now` of a rule whose next occurrence was settled to be `target`."""
        check_due(target, now)
        timeline, at = self.timeline(gap, overlap), utc_second(now)
        # Many tasks share a rule, and are asked about one after the other when they come due together.
        known = self._caught_up.get(timeline)
        if known is not None and known[0] == at and known[1] == target:
            return known[2]
        found = _catch_up(timeline, target, at)
        self._caught_up[timeline] = at, target, found
        return found

    def preview(
        self, after: datetime, count: int, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> tuple[Occurrence, ...]:
        """Return the first `count` occurrences later than `after`."""
        return tuple(itertools.islice(self.occurrences(after, gap=gap, overlap=overlap), count))

    def occurrences(
        self, after: datetime, *, gap: Gap | None = None, overlap: Overlap | None = None
    ) -> Iterator[Occurrence]:
        """Yield the occurrences later than `after` one by one, up to the end of the rule or of the year 9999."""
        return occurrences_after(self.timeline(gap, overlap), utc_second(after))


def _catch_up(timeline: Timeline, target: datetime, at: int) -> CatchUp:
    start = utc_second(target)
    last, following = timeline.last(at), timeline.first(at + 1)
    next_at = None if following is None else utc_at(following)
    if last is None or last <= start:
        return CatchUp(target, next_at, 0)
    return CatchUp(utc_at(last), next_at, timeline.count(start + 1, last) + 1)


def check_due(target: datetime, now: datetime) -> None:
    """Refuse to deliver early.

    Raises:
        ValueError: `now` lies before `target`.
    """
    if now < target:
        raise ValueError(f"nothing is due: {now.isoformat()} lies before the target {target.isoformat()}")


def zone_name(name: str) -> str:
    """Return the name of a zone as IANA writes it; aliases stay aliases.

    Raises:
        RuleError: `invalid_time_zone`.
    """
    return zone_of(name).key


def zone_of(name: str) -> ZoneInfo:
    """Return the zone of that name.

    Raises:
        RuleError: `invalid_time_zone`.
    """
    try:
        return load_zone(name)
    except UnknownZone:
        raise RuleError(
            ReminderCode.INVALID_TIME_ZONE,
            f'{quoted(name)} is not a time zone; write "UTC" or an IANA zone like "Europe/Paris": '
            "abbreviations and offsets are not zones.",
        ) from None
