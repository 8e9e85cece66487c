"""A trace, read as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.reading.curves import Curve, inboxes, mailboxes, offsets
from whenidle_lab.reading.occurrences import Occurrence, occurrences
from whenidle_lab.reading.spans import Span, spans
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from whenidle_lab.trace import Happening


@attrs.frozen
class Reading:
    """What there is to see in one trace."""

    happenings: tuple[Happening, ...]
    agents: tuple[str, ...]
    """All sessions, in the order in which they first appear."""
    spans: tuple[Span, ...]
    occurrences: tuple[Occurrence, ...]
    mailboxes: dict[str, Curve]
    inboxes: dict[str, Curve]
    offsets: Curve
    broken: int | None
    """The position at which an invariant broke, or the run failed otherwise; None if it did not."""


def read(trace: Iterable[Happening]) -> Reading:
    """Return what there is to see in a trace."""
    happenings = tuple(trace)
    found = occurrences(happenings)
    agents = dict.fromkeys(one.agent for one in happenings if one.agent)
    agents |= dict.fromkeys(one.agent for one in found if one.agent) | dict.fromkeys(_written(happenings))
    broken = (position for position, one in enumerate(happenings) if one.what is What.BROKEN)
    return Reading(
        happenings,
        tuple(agents),
        tuple(spans(happenings)),
        tuple(found),
        mailboxes(happenings),
        inboxes(happenings),
        offsets(happenings),
        next(broken, None),
    )


def _written(happenings: Iterable[Happening]) -> Iterator[str]:
    """Yield the sessions whose logs were written."""
    for happening in happenings:
        if happening.what is What.COMMIT_DURABLE:
            yield from (append["session"] for append in happening.detail.get("appends") or ())
