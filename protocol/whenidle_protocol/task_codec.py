"""A task as text in a store (SPEC 6.3): canonical JSON, strict version 1."""

from __future__ import annotations

from typing import Any, Final

from whenidle_protocol import wire
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.json_text import parse
from whenidle_protocol.json_values import json_object, safe_integer
from whenidle_protocol.rules.kinds import Rule
from whenidle_protocol.task_json import canonical_fields
from whenidle_protocol.task_record import Task
from whenidle_protocol.task_rules import decode_rule, encode_rule
from whenidle_protocol.task_text import read_task, write_task

VERSION: Final = 1


class CorruptTask(CorruptLog):
    """The text stored for a task cannot be what was written; `why` names the field."""


def encode_task(task: Task) -> str:
    """Return the text that stands for `task`; equal tasks have equal texts."""
    text = write_task(task)
    return canonical_fields({"version": VERSION, **wire.unstructure(task)}) if text is None else text


def decode_task(text: str) -> Task:
    """Return the task that a stored text stands for.

    Raises:
        CorruptTask: it is not JSON, or of another version, or has another field or type; `why` says which.
    """
    task = read_task(text)
    return _read_slowly(text) if task is None else task


def _read_slowly(text: str) -> Task:
    """Return the task of a text that is not written as usual, or find out what is wrong with it."""
    try:
        payload: Any = parse(text)
    except ValueError as error:
        raise CorruptTask(f"task: is not JSON: {error}") from error
    fields = dict(json_object(payload) or {})
    if safe_integer(fields.pop("version", None)) != VERSION:
        raise CorruptTask(f"task: version is not {VERSION} @ $.version; a newer whenidle may have written it")
    try:
        return wire.structure(fields, Task)
    except CorruptLog as error:
        raise CorruptTask(f"task: {error.why}") from error


wire.teach(Rule, decode_rule, encode_rule)
