"""What the runtime logs: stable names and fields, no words of others above DEBUG, nothing that forges a line."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.errors import StoreError
from whenidle_actors.logs import Shown, printable, report
from whenidle_actors.observation import EventKind
from whenidle_actors.tasks import Tasks
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask, UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import Script, hosted, settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whenidle_actors.observation import HostEvent
    from whenidle_actors.turn import Turn

WORDS = "the blue door"
FORGED = "x\r\n2026-01-01 CRITICAL forged\x1b[2J\u202e"

logger = logging.getLogger("whenidle.test")


@pytest.fixture
def output(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Capture everything."""
    caplog.set_level(logging.DEBUG, "whenidle")
    return caplog


def formatted(records: list[logging.LogRecord]) -> Iterator[str]:
    """Yield all that any handler could write of each record: message, traceback and every attribute."""
    formatter = logging.Formatter()
    for record in records:
        yield "\n".join([formatter.format(record), repr(vars(record)), *map(str, vars(record).values())])


async def _busy(store: FaultyStore, script: Script) -> None:
    """Run a host through everything that can go well or wrong, with one text in every place for text."""
    tasks = Tasks()

    async def fail(turn: Turn) -> None:
        await turn.note({"words": WORDS})
        if turn.number % 3 == 1:
            raise ValueError("".join(message.text for message in turn.messages))
        if turn.number % 3 == 2:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_raise, turn.messages[0].text)

    def broken(event: HostEvent) -> None:
        raise KeyError(WORDS + event.kind)

    script.every_turn = fail
    async with hosted(store, script, suites=[tasks]) as host:
        host.subscribe(broken)
        agent = await host.create_agent("a")
        reminder = {"title": WORDS, "prompt": WORDS, "rrule": "", "target": "this_session"}
        await agent.call_tool("schedule_create", reminder)
        await agent.call_tool("schedule_view", {"id": WORDS})
        made = [
            await tasks.desk.create(CreateTask(WORDS, WORDS, rule, kind), Caller("a"))
            for rule in (EveryRule(60, anchor=script.now()), AfterRule(61))
            for kind in TargetKind
        ]
        await tasks.desk.edit(UpdateTask(made[0].id, title=WORDS + "!"), Caller(""))
        for fault in (None, Fault.REFUSED, Fault.UNCERTAIN_KEPT, Fault.UNCERTAIN_LOST, Fault.BROKEN) * 4:
            store.will(fault)
            with suppress(StoreError, ZeroDivisionError):
                await agent.followup(WORDS)
            await script.advance(timedelta(seconds=61))
            await agent.when_idle()
        with pytest.raises(ValueError, match=WORDS):
            await agent.run_maintenance(lambda: _raise(WORDS))
        await agent.cancel(WORDS)
        await settled()


async def _raise(text: str) -> None:
    raise ValueError(text)


async def test_the_words_of_others_are_logged_at_debug_alone(
    store: FaultyStore, script: Script, output: pytest.LogCaptureFixture
) -> None:
    """No message, field or traceback above DEBUG holds a prompt, title or message; a failure does at DEBUG."""
    await _busy(store, script)
    above = [record for record in output.records if record.levelno > logging.DEBUG]
    names = {vars(record)["event"] for record in above}
    assert names >= {"turn-failed", "observer-failed", "turn-ended", "task-created", "task-delivered", "actor-failed"}
    assert [text for text in formatted(above) if WORDS in text] == []
    below = [record for record in output.records if record.levelno == logging.DEBUG]
    assert any(WORDS in text for text in formatted(below))


async def test_every_record_has_a_name_and_says_what_it_is_about(
    store: FaultyStore, script: Script, output: pytest.LogCaptureFixture
) -> None:
    """An event name of lower-case words, and the session where there is one."""
    await _busy(store, script)
    for record in output.records:
        fields = vars(record)
        assert fields["event"].replace("-", "").isalpha(), record.getMessage()
        assert record.name.startswith("whenidle.")
        if fields["event"].startswith("turn-"):
            assert fields["session"], record.getMessage()


async def test_events_are_logged_without_an_observer(
    store: FaultyStore, script: Script, output: pytest.LogCaptureFixture
) -> None:
    """A logger that listens is enough; the record has the event's name, session, number and facts as fields."""
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.call_tool("schedule_create", {"prompt": WORDS, "after_seconds": 1})
        await script.advance(timedelta(seconds=3))
        await settled()
    [record] = [each for each in output.records if vars(each)["event"] == EventKind.REMINDER_DELIVERED]
    assert (record.name, record.levelno) == ("whenidle.events", logging.INFO)
    assert vars(record)["session"] == "a"
    assert (vars(record)["reminders"], vars(record)["late_millis"]) == (["schedule-1"], [0])
    assert record.getMessage() == "a: reminder delivered: reminders ['schedule-1'], late_millis [0]"


async def test_at_the_default_level_what_goes_well_is_silent(
    store: FaultyStore, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody who did not ask gets a line for a delivery."""
    caplog.set_level(logging.WARNING, "whenidle")
    async with hosted(store, script) as host:
        agent = await host.create_agent("a")
        await agent.followup("x")
        await agent.when_idle()
        assert not agent.services.announcer.heard
    assert caplog.records == []


def test_no_text_forges_a_line(output: pytest.LogCaptureFixture) -> None:
    """Control characters, line breaks and bidirectional marks are written out, in messages, fields and tracebacks."""
    report(logger, logging.DEBUG, "test", "session %s", FORGED, session=FORGED, error=ValueError(FORGED))
    [record] = output.records
    text = logging.Formatter().format(record)
    for bad in "\r\x1b\u202e":
        assert bad not in text
    assert not any(line.startswith("2026") for line in text.splitlines())
    assert r"x\r\n2026-01-01 CRITICAL forged\x1b[2J\u202e" in text
    assert vars(record)["session"] == printable(FORGED)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain ä 漢", "plain ä 漢"), ("\n", r"\n"), ("\x00", r"\x00"), ("\u2028", r"\u2028"), ("\ud800", r"\ud800")],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    """Everything else stays as it is."""
    assert printable(text) == shown


def test_a_traceback_keeps_its_frames_and_types_without_texts(output: pytest.LogCaptureFixture) -> None:
    """What led to it, and every member of a group, is there by type and place; with texts at DEBUG."""

    def inner() -> None:
        raise KeyError(WORDS)

    try:
        try:
            inner()
        except KeyError as error:
            raise ExceptionGroup(WORDS, [ValueError(WORDS), TypeError(WORDS)]) from error
    except ExceptionGroup as group:
        report(logger, logging.ERROR, "test", "it failed", error=group)
    plain, full = (logging.Formatter().format(record) for record in output.records)
    for name in ("KeyError", "ExceptionGroup", "ValueError", "TypeError", "in inner"):
        assert name in plain
        assert name in full
    assert "blue door" not in plain.replace("raise KeyError(WORDS)", "")
    assert full.count(WORDS) == 4


def test_the_text_of_a_store_is_shown(output: pytest.LogCaptureFixture) -> None:
    """A full disk is for the operator to read; stores name paths and ids and never what they keep."""
    report(logger, logging.WARNING, "test", "it failed", error=StoreError("no room on a.db"))
    assert "StoreError: no room on a.db" in logging.Formatter().format(output.records[0])


def test_a_chain_of_causes_has_an_end(output: pytest.LogCaptureFixture) -> None:
    """Exceptions that cause each other are shown some times and no more."""
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    report(logger, logging.DEBUG, "test", "it failed", error=first)
    assert logging.Formatter().format(output.records[0]).count("ValueError: ") == 11


def test_an_exception_that_cannot_be_told_about_is_logged(output: pytest.LogCaptureFixture) -> None:
    """One whose own text fails is one all the same."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    report(logger, logging.DEBUG, "test", "it failed", error=Mute())
    info = output.records[0].exc_info
    assert info is not None
    assert isinstance(info[1], Shown)
    assert (str(info[1]), info[1].kind) == ("Mute: (it has no text)", Mute)
