"""What the targets would notice: each fault here is one that the product must not have."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from whenidle_protocol.errors import ReminderCode, ToolError

from .target import Target, check_message, check_refusal
from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable


def _raw(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lenient(value: object) -> str:
    return str(value)


def _broken(text: str) -> Any:
    raise ArithmeticError(text)


FAULTS: list[tuple[str, str, Callable[..., Any]]] = [
    ("reminder-frames", "whenidle_protocol.framing.stringify", _raw),
    ("task-frames", "whenidle_protocol.task_framing._json", _raw),
    ("names", "tests.fuzz.targets.names.check_session_id", _lenient),
    ("terminal", "tests.fuzz.targets.terminal.visible", _lenient),
    ("terminal", "tests.fuzz.targets.terminal.printable", _lenient),
    ("terminal", "tests.fuzz.targets.terminal.json_line", lambda value, **_: json.dumps(value, ensure_ascii=False)),
    ("reminder-tools", "whenidle_protocol.tools.printable_string", _raw),
    ("reminder-tools", "whenidle_protocol.tools.trim", _lenient),
    ("task-tools", "whenidle_protocol.task_tools.check_target", _broken),
    ("stored-tasks", "whenidle_protocol.task_text.parse_instant", lambda _: None),
    ("session-logs", "whenidle_actors.stores.jsonl.parse", json.loads),
    ("rrules", "whenidle_protocol.recurrence.text.quoted", _lenient),
    ("cron", "whenidle_protocol.rules.cron_fields.quoted", _lenient),
    ("times", "whenidle_protocol.rules.at.resolve_once", lambda *_: None),
    ("commands", "whenidle.command_template._alone", lambda text, **_: text),
]


@pytest.mark.parametrize(("name", "place", "fault"), FAULTS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_fault_is_noticed(name: str, place: str, fault: Callable[..., Any]) -> None:
    """By an input that the target begins with, or that was found for it."""
    with ExitStack() as ended:
        ended.enter_context(patch(place, fault))
        assert _breaks(TARGETS[name])


def _breaks(target: Target) -> bool:
    for seed in target.seeds:
        try:
            target.check(seed)
        except Exception:  # noqa: BLE001 - which one is not the question
            return True
    return False


def _sum(_: bytes) -> None:
    sum(range(20_000))


def test_what_takes_too_long_or_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that keeps the processor busy, or that fills the memory."""
    busy = Target("busy", _sum, ())
    busy.check(b"")
    monkeypatch.setattr("tests.fuzz.target.CPU_SECONDS", 0.0)
    with pytest.raises(AssertionError, match="processor time"):
        busy.check(b"")
    monkeypatch.undo()
    peaks = iter([100, 100 + 256])
    monkeypatch.setattr("tests.fuzz.target._peak_mib", lambda: next(peaks))
    with pytest.raises(AssertionError, match="MiB of memory"):
        Target("greedy", lambda _: None, ()).check(b"")


@pytest.mark.parametrize("message", ["", "two\nlines", "\x9b31m", "x" * 1001])
def test_a_message_that_cannot_be_shown_is_noticed(message: str) -> None:
    """One that is empty, longer than a line, or would do something to a terminal; and a code that is not declared."""
    with pytest.raises(AssertionError):
        check_message(message)
    with pytest.raises(AssertionError):
        check_refusal(ToolError(ReminderCode.INVALID_RULE, "It is wrong."), {"invalid_prompt"})
