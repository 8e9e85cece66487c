"""Which occurrences a message delivers, read from the text that the model sees (SPEC 5.9, 6.10)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from whenidle_lab.invariants.facts import Announced

if TYPE_CHECKING:
    from collections.abc import Iterator

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_decode: Final = json.JSONDecoder().raw_decode


def parsed(text: str) -> Any:
    """Return what JSON text says that has no white space around it, as nothing has that is stored.

    It is what `json.loads` does, without a search for white space, which takes as long again.

    Raises:
        ValueError: it is no such text.
    """
    value, end = _decode(text)
    if end != len(text):
        raise ValueError(f"something follows after {end} characters")
    return value


@lru_cache(maxsize=65_536)
def millis(instant: str) -> int:
    """Return an instant of the wire in milliseconds since the epoch.

    Raises:
        ValueError: it is none.
    """
    return (datetime.fromisoformat(instant) - _EPOCH) // _MILLISECOND


def announced_by(session: str, message: str, text: str) -> Iterator[Announced]:
    """Iterate over what a message delivers, in its order; nothing if it is no frame.

    Raises:
        ValueError, LookupError, TypeError: it begins like a frame and goes on otherwise.
    """
    heading, *lines = text.split("\n")
    if heading == "[SCHEDULE REMINDER]":
        fields = _fields(lines[1:])
        yield _reminder(
            session,
            message,
            json.loads(fields["schedule_id_json"]),
            fields["occurrence_at"],
            json.loads(fields["reminder_prompt_json"]),
        )
    elif heading == "[SCHEDULE REMINDER BATCH]":
        for each in json.loads(_fields(lines[1:])["reminders_json"]):
            yield _reminder(session, message, each["schedule_id"], each["occurrence_at"], each["reminder_prompt"])
    elif heading == "[SCHEDULED TASK]":
        fields = _fields(lines[1:])
        yield _task(
            session,
            message,
            {
                "task_id": json.loads(fields["task_id_json"]),
                "occurrence_at": fields["occurrence_at"],
                "prompt": json.loads(fields["prompt_json"]),
                "missed_occurrences": int(fields["missed_occurrences"]),
            },
        )
    elif heading == "[SCHEDULED TASK BATCH]":
        for each in json.loads(_fields(lines[1:])["tasks_json"]):
            yield _task(session, message, each)


def _fields(lines: list[str]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in lines)


def _reminder(session: str, message: str, identity: str, occurrence: str, prompt: str) -> Announced:
    return Announced(session, message, False, identity, millis(occurrence), prompt)  # noqa: FBT003 - no task


def _task(session: str, message: str, told: dict[str, Any]) -> Announced:
    return Announced(
        session,
        message,
        True,  # noqa: FBT003 - a task
        told["task_id"],
        millis(told["occurrence_at"]),
        told["prompt"],
        told["missed_occurrences"],
    )
