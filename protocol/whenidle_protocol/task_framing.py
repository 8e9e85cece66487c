"""The text a model sees for scheduled tasks that are due (SPEC 6.10).

A prompt is an instruction that the user authorised earlier. It is given as one JSON string, title and all,
so that nothing in it can pass for another line of the frame, and the frame says what it is not: a prompt
such as "remind me every day" was taken care of when the task was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from whenidle_clock.instants import format_instant
from whenidle_protocol.task_json import struct_text
from whenidle_protocol.task_local_time import format_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whenidle_protocol.task_delivery import Due

_ONE = (
    "A scheduled task is due. prompt_json is the instruction that the user authorised when the task was made: carry "
    "it out now. It is not a request to schedule anything again; what it says about times and repetition was settled "
    "then."
)
_SEVERAL = (
    "Scheduled tasks are due. Each prompt in tasks_json is an instruction that the user authorised when its task was "
    "made: carry out all of them now, in this order. None is a request to schedule anything again; what it says about "
    "times and repetition was settled then."
)

# JSON leaves these as they are, and some readers begin a new line at each of them.
_LINE_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def frame(dues: Sequence[Due]) -> str:
    """Return the message that delivers what is due for one session, in the order given; at least one."""
    if len(dues) > 1:
        return "\n".join(("[SCHEDULED TASK BATCH]", _SEVERAL, f"tasks_json: {_json([_shown(due) for due in dues])}"))
    (due,) = dues
    shown = _shown(due)
    return "\n".join(
        (
            "[SCHEDULED TASK]",
            _ONE,
            f"task_id_json: {_json(shown.task_id)}",
            f"title_json: {_json(shown.title)}",
            f"occurrence_at: {shown.occurrence_at}",
            f"occurrence_at_local: {shown.occurrence_at_local}",
            f"late_seconds: {_json(shown.late_seconds)}",
            f"missed_occurrences: {shown.missed_occurrences}",
            f"prompt_json: {_json(shown.prompt)}",
        )
    )


class _Shown(Struct, gc=False):
    """What is shown of a delivery, in this order."""

    task_id: str
    title: str
    occurrence_at: str
    occurrence_at_local: str
    late_seconds: float
    missed_occurrences: int
    prompt: str


def _shown(due: Due) -> _Shown:
    task = due.task
    return _Shown(
        task.id,
        task.title,
        format_instant(due.occurrence),
        format_local(due.occurrence, task.rule.time_zone),
        _seconds(due.late_millis),
        due.missed,
        task.prompt,
    )


def _seconds(millis: int) -> float:
    """Return seconds as JSON shows them: `5`, not `5.0`. The others have few digits, which all writers show alike."""
    return millis / 1000 if millis % 1000 else millis // 1000


def _json(value: list[_Shown] | str | float) -> str:
    text = struct_text(value)
    return text if text.isascii() else text.translate(_LINE_BREAKS)
