"""Ids of sessions and tasks: what is taken can be the name of a file, a line of a log, a variable."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import PurePath, PurePosixPath
from typing import Final

from tests.fuzz.choices import Choices, free_text
from tests.fuzz.target import Target, check_message
from whenidle_actors.errors import InvalidArgument
from whenidle_actors.session import MAX_ID_LENGTH, check_session_id
from whenidle_protocol.task_ids import (
    MAX_TASK_ID,
    is_task_id,
    occurrence_session_id,
    reserved_session_id,
    run_session_id,
)

_FOLDER: Final = PurePosixPath("/data/folders")
_MOMENT: Final = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


def _names(data: bytes) -> None:
    choices = Choices(data)
    name = free_text(choices.rest()) if choices.flag() else choices.text()
    try:
        taken = check_session_id(name)
    except InvalidArgument as error:
        check_message(str(error))
        assert not (is_task_id(name) and len(name) <= MAX_ID_LENGTH)
        return
    assert taken == name
    _check_name(name)
    assert is_task_id(name) == (len(name) <= MAX_TASK_ID)
    if is_task_id(name):
        for made in (reserved_session_id, occurrence_session_id, run_session_id):
            _check_name(check_session_id(made(name, _MOMENT)))


def _check_name(name: str) -> None:
    assert 1 <= len(name) <= MAX_ID_LENGTH
    assert re.search(r"[^A-Za-z0-9._:-]", name) is None
    inside = _FOLDER / name
    assert inside.parent == _FOLDER
    assert inside.name == name
    assert not name.startswith(".")
    assert PurePath(name).parts == (name,)


NAMES: Final = Target(
    "names",
    _names,
    (b"\1support-42", b"\1.hidden", b"\1a/b", b"\1..", b"\1a" + b"b" * 127, b"\1" + b"c" * 129, b"\0\1\21"),
)
