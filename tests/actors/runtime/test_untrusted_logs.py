"""What strangers wrote, in what the runtime logs: nothing of it above DEBUG, and nowhere more than a line."""

from __future__ import annotations

import io
import json
import logging
import unicodedata
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.errors import StoreError
from whenidle_actors.offline import open_manager
from whenidle_actors.reminders import Reminders
from whenidle_actors.session import fold, index_of
from whenidle_actors.stores.jsonl import import_session
from whenidle_actors.tasks import Tasks
from whenidle_protocol.rules.once import AfterRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_settings import Caller

from .worlds import Script, hosted, settled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whenidle_actors.stores.base import SessionHeader, SessionIndex
    from whenidle_actors.turn import Turn
    from whenidle_protocol.events import EventRecord

NASTY = 'x\x1b]0;owned\x07\x9b31m\r\n2026-01-01 CRITICAL forged\u2028\u202e\0\ud800"}]\n%s{0}'
AT = "2026-01-01T00:00:00.000Z"
SUITES = (Reminders, Tasks)


def exported() -> bytes:
    """Return a session whose ids are nasty, and in which a message waits and a reminder is due."""
    message = {"id": NASTY, "lane": "next-turn", "wake": True, "text": NASTY, "source": "user"}
    reminder = {"id": NASTY, "kind": "at", "prompt": NASTY, "scheduledAt": AT}
    events = [
        ("inbox/insert", message),
        ("schedule/change", {"version": 1, "operation": "create", "schedule": reminder}),
    ]
    whole = NASTY.replace("\ud800", "")
    header = {
        "id": "mallory",
        "createdAt": AT,
        "parent": whole,
        "delegationDepth": 0,
        "cwd": whole,
        "preset": whole,
        "seedLength": 0,
        "forkedFrom": whole,
    }
    lines: list[Any] = [{"format": "whenidle-session", "version": 1, "session": header, "events": len(events)}]
    lines += [{"seq": seq, "at": AT, "type": kind, "data": data} for seq, (kind, data) in enumerate(events)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def validated(header: SessionHeader, records: Sequence[EventRecord]) -> SessionIndex:
    """Return the index of an imported session."""
    return index_of(fold(header, records))


def texts(value: Any) -> Iterator[str]:
    """Yield every text that a formatter could write of a field."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from texts(each)
    elif isinstance(value, dict):
        yield from texts([*value, *value.values()])


async def _busy(store: FaultyStore, script: Script, suite: Reminders | Tasks) -> None:
    """Run a host on that session through deliveries, failures, faults of the store and a clock that is set."""

    async def fail(turn: Turn) -> None:
        await turn.note({"words": NASTY})
        if turn.number % 2:
            raise ValueError(NASTY)

    script.every_turn = fail
    async with open_manager(store) as manager:
        await import_session(manager.store, io.BytesIO(exported()), file=NASTY, validate=validated)
    async with hosted(store, script, suites=[suite]) as host:
        await settled()
        agent = await host.create_agent("ada", cwd=NASTY.replace("\ud800", ""), preset="p")
        if isinstance(suite, Tasks):
            request = CreateTask("x\u202e\x1b[2J", NASTY, AfterRule(30), TargetKind.THIS_SESSION)
            await suite.desk.create(request, Caller("ada"))
        await agent.call_tool("schedule_create", {"prompt": NASTY, NASTY: NASTY, "after_seconds": 30})
        await agent.call_tool("schedule_create", {"prompt": NASTY, "after_seconds": 30})
        for fault in (None, Fault.REFUSED, Fault.UNCERTAIN_KEPT, Fault.BROKEN, None):
            store.will(fault)
            with suppress(StoreError, ZeroDivisionError):
                await agent.followup(NASTY)
            await script.advance(timedelta(seconds=61))
            await settled()
        await agent.cancel(NASTY)
        await settled()


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
async def test_no_record_has_a_character_that_does_something(
    script: Script, caplog: pytest.LogCaptureFixture, suite: type[Reminders | Tasks], level: int
) -> None:
    """Neither its message nor any field; tracebacks have lines of their own and none of anybody else's."""
    caplog.set_level(level, "whenidle")
    await _busy(FaultyStore(), script, suite())
    assert len(caplog.records) > 10
    for record in caplog.records:
        fields = [text for name, value in vars(record).items() if name != "exc_text" for text in texts(value)]
        for text in [record.getMessage(), *fields]:
            assert text.isprintable(), (vars(record)["event"], ascii(text))
        for line in logging.Formatter().format(record).split("\n"):
            assert not {unicodedata.category(each) for each in line} & {"Cc", "Cs", "Zl", "Zp", "Cf"}, ascii(line)
            assert not line.startswith("2026")


@pytest.mark.parametrize("suite", SUITES)
async def test_prompts_and_titles_are_not_logged(
    script: Script, caplog: pytest.LogCaptureFixture, suite: type[Reminders | Tasks]
) -> None:
    """Above DEBUG no record has a prompt, a title, a message or a reason in it, whole or in the form it is shown."""
    caplog.set_level(logging.INFO, "whenidle")
    await _busy(FaultyStore(), script, suite())
    for record in caplog.records:
        everything = "\n".join([logging.Formatter().format(record), *texts(list(vars(record).values()))])
        if "mallory" not in everything:  # whose ids are such texts
            assert "forged" not in everything, everything
            assert "owned" not in everything
