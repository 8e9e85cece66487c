"""What `run` tells: slow readers, untrusted text, and the picture on a terminal."""

import io
import logging
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
import trio
from rich.console import Console

from whenidle import Turn, open_host
from whenidle.cli.live import AgentRow, LiveReporter, Picture, TaskLine, drawn, reporter_for
from whenidle.cli.output import Output
from whenidle.cli.reporting import BACKLOG, Happening, LineReporter, LogToReporter
from whenidle.command_report import CommandFailed
from whenidle_actors.observation import EventKind, HostEvent
from whenidle_clock import VirtualClock

from .processes import eventually_async

NOW = datetime(2026, 3, 8, 10, 0, tzinfo=UTC)
EVIL = "[red]\x1b[2J\u202e"


def screen(*, terminal: bool, width: int = 100) -> tuple[Output, io.StringIO]:
    """Return an output and the file it goes to."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, height=20, color_system=None)
    return Output(json=False, console=console), file


def happened(**detail: object) -> HostEvent:
    """Return something that happened."""
    return HostEvent(EventKind.TURN_ENDED, "ada", NOW, detail)


def test_each_event_is_a_line_without_anything_unsafe() -> None:
    """Instant, session, what happened and the facts, with unsafe text written out."""
    output, file = screen(terminal=False)
    reporter = LineReporter(output, VirtualClock(NOW))
    reporter.event(happened(turn=1, outcome=None, cause=EVIL, messages=("m0", "m1")))
    reporter.close()
    assert file.getvalue() == (
        r"2026-03-08T10:00:00.000Z  ada  turn ended  turn 1, cause [red]\x1b[2J\u202e, messages m0 m1" + "\n"
    )


def test_a_document_cannot_be_disguised_by_its_facts() -> None:
    """What a fact is called never replaces the event's own fields."""
    document = Happening("now", "turn-ended", "ada", {"event": "forged", "turn": 1}).document()
    assert document == {"event": "turn-ended", "turn": 1, "at": "now", "session": "ada"}


def test_what_a_slow_reader_misses_is_counted() -> None:
    """The oldest happenings give way, memory stays bounded, and a line says how many there were."""
    output, file = screen(terminal=False)
    reporter = LineReporter(output, VirtualClock(NOW))
    for number in range(BACKLOG + 7):
        reporter.tell("tick", number=number)
    reporter.close()
    lines = file.getvalue().splitlines()
    assert len(lines) == BACKLOG + 1
    assert lines[0] == "2026-03-08T10:00:00.000Z  not shown  count 7"
    assert lines[1].endswith("number 7")


def test_the_log_is_told_in_lines_without_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings of the runtime are told with their cause; the failure of a command is told by its turn."""
    output, file = screen(terminal=False)
    reporter = LineReporter(output, VirtualClock(NOW))
    logger = logging.getLogger("whenidle.test-of-reporting")
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [LogToReporter(reporter)])
    logger.info("not worth a line")
    logger.warning("no room for %s", "it")
    for error in (CommandFailed("the command ended with exit status 3", 3), KeyError("x")):
        try:
            raise error
        except (CommandFailed, KeyError):
            logger.exception("turn 1 failed")
    reporter.close()
    assert [line.partition("Z  ")[2] for line in file.getvalue().splitlines()] == [
        "log  level warning, message no room for it",
        "log  level error, message turn 1 failed, cause KeyError: 'x'",
    ]


def test_the_kind_of_output_decides_how_it_is_told() -> None:
    """A terminal gets the live status; a file, and a program, get lines."""
    clock = VirtualClock(NOW)
    assert isinstance(reporter_for(screen(terminal=True)[0], clock), LiveReporter)
    assert isinstance(reporter_for(screen(terminal=False)[0], clock), LineReporter)
    assert isinstance(reporter_for(Output(json=True, console=screen(terminal=True)[0].console), clock), LineReporter)


def test_a_picture_shows_agents_reminders_and_news() -> None:
    """One row an agent, and no text of theirs is obeyed."""
    rows = (
        AgentRow("ada", "running", None),
        AgentRow("bob", "idle", NOW + timedelta(minutes=5)),
        AgentRow("eve", "asleep", NOW - timedelta(seconds=3)),
    )
    picture = Picture("a.db", NOW, NOW - timedelta(hours=2), 2, rows, (Happening("now", "log", EVIL).line(),))
    output, file = screen(terminal=False)
    output.console.print(drawn(picture))
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "whenidle a.db  up 2h 00m  agents 2  Ctrl-C stops",
        "session  phase    next reminder",
        "ada      running  -",
        "bob      idle     in 5m 00s",
        "eve      asleep   overdue by 3.0s",
        r"now  [red]\x1b[2J\u202e  log",
    ]


def test_a_picture_shows_the_tasks_that_come_next() -> None:
    """Below the agents are the first few tasks, and their number is in the first line."""
    tasks = (
        TaskLine(EVIL, NOW + timedelta(hours=3), "session ada"),
        TaskLine("Digest", NOW - timedelta(seconds=3), "new sessions"),
    )
    output, file = screen(terminal=False)
    output.console.print(drawn(Picture("a.db", NOW, NOW, 0, (), ("news",), tasks, 17)))
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "whenidle a.db  up 0.0s  agents 0  tasks 17  Ctrl-C stops",
        "session  phase  next reminder",
        "task                next occurrence  target",
        r"[red]\x1b[2J\u202e  in 3h 00m        session ada",
        "Digest              overdue by 3.0s  new sessions",
        "news",
    ]


def test_a_narrow_terminal_cuts_and_does_not_wrap() -> None:
    """Long ids take no second line, so that the picture keeps its height."""
    output, file = screen(terminal=False, width=40)
    news = ("x" * 200,)
    output.console.print(drawn(Picture("s", NOW, NOW, 1, (AgentRow("y" * 128, "idle", NOW),), news)))
    assert max(map(len, file.getvalue().splitlines())) <= 40
    assert len(file.getvalue().splitlines()) == 4


async def test_a_reader_that_is_stuck_does_not_stop_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a write hangs the loop goes on, and closing waits for it only so long."""
    monkeypatch.setattr("whenidle.cli.reporting.LAST_WORDS_SECONDS", 0.01)
    stuck, release = threading.Event(), threading.Event()
    output, file = screen(terminal=False)

    class Stuck(LineReporter):
        def write(self, news: Sequence[Happening]) -> None:
            stuck.set()
            release.wait()
            super().write(news)

    reporter = Stuck(output, VirtualClock(NOW))
    async with open_host(store=None, turn=silent) as host:
        reporter.started(host)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reporter.watch, host)
            await eventually_async(stuck.is_set)
            reporter.tell("last-words")
            reporter.close()
            nursery.cancel_scope.cancel()
    assert file.getvalue() == ""
    release.set()
    await eventually_async(lambda: "host started" in file.getvalue())
    assert "last words" not in file.getvalue()


async def silent(_turn: Turn) -> None:
    """Be an agent that has nothing to say."""
