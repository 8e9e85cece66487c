"""Where two runs that should be one part."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from whenidle_lab.recording import MARK, MAX_MARKS, counted, mark

if TYPE_CHECKING:
    from whenidle_lab.trace import Trace

SHOWN = 500
"""Characters of a happening that are shown."""


def parted(first: Trace, second: Trace) -> str:
    """Return where two traces part, for a person."""
    for index, pair in enumerate(zip_longest(counted(first), counted(second))):
        was, is_now = ("nothing" if happening is None else happening.line() for happening in pair)
        if was != is_now:
            return f"happening {index} differs\n first: {was[:SHOWN]}\nsecond: {is_now[:SHOWN]}"
    return "what happened is the same, and the choices are not"


def parted_from(marks: str, trace: Trace) -> str:
    """Return where a trace parts from one of which only the marks are known, for a person."""
    lines = [happening.line() for happening in counted(trace)]
    for index, line in enumerate(lines[:MAX_MARKS]):
        if mark(line) != marks[MARK * index : MARK * (index + 1)]:
            extra = MARK * index >= len(marks)
            how = "was not there when it was recorded" if extra else "is not the one that was recorded"
            return f"happening {index} {how}\n   now: {line[:SHOWN]}"
    if len(marks) // MARK > len(lines):
        return f"the run ended after {len(lines)} happenings; {len(marks) // MARK} were recorded"
    return "something differs that left no mark"
