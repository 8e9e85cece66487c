"""What tools refuse, told in the words of the command line."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from whenidle.cli.exits import CommandRefused
from whenidle.cli.text import shortened
from whenidle_protocol.errors import TaskCode, ToolError
from whenidle_protocol.task_ids import is_task_id

_ARGUMENTS = {"after_seconds": "--after", "every_seconds": "--every", "time_zone": "--zone"}
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r", or an object with exactly date.*", re.DOTALL),
        ", or with --zone a local time like 2030-01-31T09:00:00.",
    ),
    (re.compile(r"^at\b"), "--at"),
    (re.compile(r"\bgive a new rrule in the same call\b"), "give it a new rule with `whenidle task edit`"),
    *((re.compile(rf"\b{argument}\b"), option) for argument, option in _ARGUMENTS.items()),
)


def answered(answer: Any) -> Any:
    """Return the answer of a tool, unless it is an error.

    Raises:
        CommandRefused: it is one; the message names the options instead of the tool's arguments.
    """
    if isinstance(answer, dict):
        document = cast("dict[str, Any]", answer)
        if document.keys() >= {"code", "message"}:
            raise CommandRefused(document["code"], in_option_words(document["message"]))
    return cast("Any", answer)


@contextmanager
def refusals() -> Generator[None]:
    """Let what the runtime refuses end the command as a refusal of the command's own."""
    try:
        yield
    except ToolError as error:
        raise CommandRefused(error.code.value, in_option_words(error.message)) from error


@contextmanager
def refusals_about(task_id: str) -> Generator[None]:
    """Do the same as `refusals`, and name a task that is not there, or that no task can have the id of."""
    if not is_task_id(task_id):
        raise _no_task(task_id)
    try:
        with refusals():
            yield
    except CommandRefused as refusal:
        if refusal.code == TaskCode.SCHEDULE_NOT_FOUND:
            raise _no_task(task_id) from refusal
        raise


def _no_task(task_id: str) -> CommandRefused:
    message = f"there is no task '{shortened(task_id, 100)}'; `whenidle task list` lists them"
    return CommandRefused(TaskCode.SCHEDULE_NOT_FOUND.value, message)


def in_option_words(message: str) -> str:
    """Return the message of a refusal with options in place of a tool's arguments."""
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message.removesuffix(".")
