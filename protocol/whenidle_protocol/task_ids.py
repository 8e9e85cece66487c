"""Ids of tasks, and the ids of the sessions a task makes (SPEC 6.3, 6.8).

The id of such a session is a function of the task and the moment, so that a retry finds what an earlier
attempt made. The marks `once`, `at` and `run` keep the three uses apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from whenidle_clock.instants import format_instant

if TYPE_CHECKING:
    from datetime import datetime

MAX_TASK_ID: Final = 64
"""Characters of a task id: with a mark and an instant behind it, it is still a session id (128 at most)."""

_TASK_ID = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9._:-]{{0,{MAX_TASK_ID - 1}}}", re.ASCII)
_BASIC_FORMAT = str.maketrans("", "", "-:.")


def is_task_id(value: Any) -> TypeGuard[str]:
    """Return whether `value` is a string that can name a task.

    That is 1 to 64 characters out of `A-Z a-z 0-9 . _ : -`, without a leading dot.
    """
    return type(value) is str and _TASK_ID.fullmatch(value) is not None


def reserved_session_id(task_id: str, decided_at: datetime) -> str:
    """Return the id of the one session that a `new_once` target reserves by a decision at `decided_at`."""
    return _session_id(task_id, "once", decided_at)


def occurrence_session_id(task_id: str, occurrence: datetime) -> str:
    """Return the id of the session that a `new` target makes for `occurrence`."""
    return _session_id(task_id, "at", occurrence)


def run_session_id(task_id: str, run_at: datetime) -> str:
    """Return the id of the session that a `new` target makes when the task is run by hand at `run_at`."""
    return _session_id(task_id, "run", run_at)


def _session_id(task_id: str, mark: str, moment: datetime) -> str:
    return f"{task_id}.{mark}.{format_instant(moment).translate(_BASIC_FORMAT)}"
