"""The host behind `whenidle run`, in this process: signals, the reporter, and the look of the live status."""

import io
import json
import shlex
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.lowlevel
from rich.console import Console

from whenidle import (
    AfterRule,
    Caller,
    CreateTask,
    Host,
    MemoryStore,
    Reminders,
    TargetKind,
    Tasks,
    open_host,
    open_manager,
)
from whenidle.cli import service
from whenidle.cli.exits import Exit
from whenidle.cli.live import AGENTS_SHOWN, TASKS_SHOWN, LiveReporter, TaskLine, look_at
from whenidle.cli.output import Output
from whenidle.cli.reporting import Happening, LineReporter, Reporter
from whenidle.cli.service import Settings, serve
from whenidle.command_agent import CommandAgent
from whenidle.command_template import command_line
from whenidle_actors.errors import StoreLocked
from whenidle_actors.stores.base import Batch, TaskRow, TaskWrite
from whenidle_clock import SystemClock, from_millis, parse_instant

from .command_line import python
from .processes import alive, eventually_async, written

WAIT = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[2] == 'deaf' else signal.SIG_DFL)
open(sys.argv[1], 'w').write(f'{os.getpid()}\\n')
time.sleep(3600)
"""


class Notes(LineReporter):
    """A reporter that keeps what it would write."""

    def __init__(self) -> None:
        super().__init__(Output(json=True, console=Console(file=io.StringIO())), SystemClock())
        self.told: list[Happening] = []

    def write(self, news: Any) -> None:
        """Keep the news."""
        self.told += news

    def has(self, kind: str) -> bool:
        """Whether something of that kind was told."""
        return kind in self.kinds

    @property
    def kinds(self) -> list[str]:
        """What was told, in order."""
        return [happening.kind for happening in self.told]


@attrs.define
class Serving:
    """A service in the background, and its exit status once it has one."""

    reporter: Any
    exit: Exit | None = None


def settings(store: Path, command: list[str], *, shutdown_timeout: float = 1, grace: float = 0.5) -> Settings:
    """Return the settings of a service."""
    clock = SystemClock()
    agent = CommandAgent(argv=command_line(shlex.join(command)), clock=clock, grace=grace)
    return Settings(store=str(store), agent=agent, clock=clock, max_turns=2, shutdown_timeout=shutdown_timeout)


@asynccontextmanager
async def serving(settings: Settings, reporter: Reporter) -> AsyncIterator[Serving]:
    """Run a service beside the block; the block has to end it."""
    service = Serving(reporter)

    async def run() -> None:
        service.exit = await serve(settings, reporter)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield service


async def send(store: Path, text: str = "hello") -> None:
    """Queue a message as another process would."""
    async with open_manager(store) as manager:
        await manager.send("ada", text)


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, Exit.OK), (signal.SIGHUP, Exit.OK), (signal.SIGINT, Exit.INTERRUPTED)],
)
async def test_a_signal_stops_an_idle_host_in_order(store: Path, number: signal.Signals, status: Exit) -> None:
    """The signal decides the exit status, and beginning and end are told."""
    reporter = Notes()
    async with serving(settings(store, ["cat"]), reporter) as service:
        await eventually_async(lambda: reporter.has("host-started"))
        signal.raise_signal(number)
    assert service.exit is status
    assert (reporter.kinds[0], reporter.kinds[-1]) == ("host-started", "host-stopped")
    stopping = next(happening for happening in reporter.told if happening.kind == "host-stopping")
    assert stopping.detail == {"cause": number.name, "seconds": 1}


async def test_a_signal_that_was_ignored_stays_ignored(store: Path) -> None:
    """A host started by nohup survives the end of its terminal."""
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    reporter = Notes()
    try:
        async with serving(settings(store, ["cat"]), reporter) as service:
            await eventually_async(lambda: reporter.has("host-started"))
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    assert service.exit is Exit.OK


async def test_a_deaf_command_is_killed_within_the_shutdown_timeout(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grace of the command is a part of the timeout, not added to it: turns get what is left."""
    reporter, opened = Notes(), list[dict[str, Any]]()

    def opening(**options: Any) -> AbstractAsyncContextManager[Host]:
        opened.append(options)
        return open_host(**options)

    monkeypatch.setattr(service, "open_host", opening)
    command = python(WAIT, str(tmp_path / "pid"), "deaf")
    async with serving(settings(store, command, shutdown_timeout=3, grace=2.9), reporter):
        await send(store)
        pid = int(await eventually_async(lambda: written(tmp_path / "pid")))
        signal.raise_signal(signal.SIGTERM)
    assert not alive(pid)
    at = {happening.kind: parse_instant(happening.at) for happening in reporter.told}
    seconds = (at["host-stopped"] - at["host-stopping"]).total_seconds()
    assert seconds > 2.9
    assert [options["shutdown_timeout"] for options in opened] == [pytest.approx(0.1)]


async def test_a_turn_that_ends_in_time_is_not_interrupted(store: Path, tmp_path: Path) -> None:
    """An orderly stop lets a turn finish, and starts no other."""
    script = """
import os, sys, time
open(sys.argv[1], 'w').write('x\\n')
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
"""
    begun, may_end = tmp_path / "begun", tmp_path / "may end"
    reporter = Notes()
    one = settings(store, python(script, str(begun), str(may_end)), shutdown_timeout=60)
    async with serving(one, reporter) as service:
        await send(store, "first")
        await eventually_async(lambda: written(begun))
        await send(store, "second")
        signal.raise_signal(signal.SIGTERM)
        await eventually_async(lambda: reporter.has("host-stopping"))
        may_end.touch()
    assert service.exit is Exit.OK
    ends = [happening.detail for happening in reporter.told if happening.kind == "turn-ended"]
    assert [end["outcome"] for end in ends] == ["completed"]
    assert reporter.kinds.count("turn-started") == 1


async def test_a_second_signal_interrupts_and_kills_at_once(store: Path, tmp_path: Path) -> None:
    """Neither the turn's patience nor the command's grace is waited for; the turn will be given again."""
    reporter = Notes()
    command = python(WAIT, str(tmp_path / "pid"), "deaf")
    patient = settings(store, command, shutdown_timeout=10_000, grace=5_000)
    async with serving(patient, reporter) as service:
        await send(store)
        pid = int(await eventually_async(lambda: written(tmp_path / "pid")))
        signal.raise_signal(signal.SIGTERM)
        await eventually_async(lambda: reporter.has("host-stopping"))
        signal.raise_signal(signal.SIGINT)
    assert service.exit is Exit.OK
    assert not alive(pid)
    assert reporter.has("host-hurrying")
    async with open_manager(store) as manager:
        end = json.loads((await manager.read("ada")).records[-1].data)
    assert (end["outcome"], end["redeliver"]) == ("interrupted", True)


async def test_a_reader_that_is_gone_stops_the_host_in_order(store: Path) -> None:
    """What cannot be told any more ends the host, and the reason comes out."""

    class Gone(Notes):
        def write(self, news: Any) -> None:
            super().write(news)
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await serve(settings(store, ["cat"]), Gone())


async def test_a_store_in_use_ends_the_service_before_it_tells_anything(store: Path) -> None:
    """The error passes through, and nothing is said to have started."""
    reporter = Notes()
    async with open_host(store=store, turn=CommandAgent(argv=command_line("cat"))):
        with pytest.RaisesGroup(StoreLocked):
            await serve(settings(store, ["cat"]), reporter)
    assert not reporter.has("host-started")


async def test_the_live_status_follows_the_host(store: Path, tmp_path: Path) -> None:
    """Start, work, and end are drawn, and the display is closed at the end."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, height=30, color_system=None)
    reporter = LiveReporter(Output(json=False, console=console), SystemClock())
    command = python(WAIT, str(tmp_path / "pid"), "polite")
    async with serving(settings(store, command), reporter) as service:
        await send(store)
        await eventually_async(lambda: written(tmp_path / "pid"))
        await eventually_async(lambda: "running" in file.getvalue())
        signal.raise_signal(signal.SIGINT)
    assert service.exit is Exit.INTERRUPTED
    assert "host stopped" in file.getvalue().rpartition("host stopping")[2]
    assert "\x1b[?25l" in file.getvalue()
    assert file.getvalue().endswith("\x1b[?25h")


async def test_the_picture_has_the_tasks_that_come_next() -> None:
    """The first few of those that are active, and how many there are."""
    tasks = Tasks(presets=())
    async with open_host(store=MemoryStore(), turn=ignore, suites=[Reminders(), tasks]) as host:
        for number in range(TASKS_SHOWN + 2):
            request = CreateTask(f"t{number}", "x", AfterRule(600 - number), TargetKind.NEW)
            await tasks.desk.create(request, Caller(""))
        picture = await look_at(host, host.clock.now())
    assert picture.task_count == TASKS_SHOWN + 2
    assert [task.title for task in picture.tasks] == [f"t{number}" for number in (5, 4, 3, 2)]
    assert {task.target for task in picture.tasks} == {"new sessions"}


async def test_the_picture_has_a_damaged_task_by_its_id() -> None:
    """It does not hide the others."""
    async with open_host(store=MemoryStore(), turn=ignore, suites=[Tasks(presets=())]) as host:
        row = TaskRow("task-1", "{}", 1, 90_000)
        await host.store.commit(Batch(tasks=(TaskWrite(row.id, None, row),)))
        picture = await look_at(host, host.clock.now())
    assert picture.tasks == (TaskLine("task-1", from_millis(90_000), "(damaged)"),)


async def ignore(_: object) -> None:
    """Take no notice of a turn."""


async def test_the_picture_puts_work_first_and_bounds_the_rest(nursery: trio.Nursery) -> None:
    """Agents at work come first, then who is due next; no more rows than fit."""
    release: dict[str, Callable[[], object]] = {}

    async def turn(turn: Any) -> None:
        event = trio.Event()
        release[turn.agent.id] = event.set
        await event.wait()

    async with open_host(store=None, turn=turn, suites=()) as host:
        for number in range(AGENTS_SHOWN + 5):
            await host.create_agent(f"a{number:02}")
        busy = await host.agent("a16")
        await busy.followup("hello")
        while "a16" not in release:
            await trio.lowlevel.checkpoint()
        picture = await look_at(host, host.clock.now())
        release["a16"]()
        await busy.when_idle()
    del nursery
    assert picture.agents == AGENTS_SHOWN + 5
    assert len(picture.rows) == AGENTS_SHOWN
    assert [(row.session, row.phase) for row in picture.rows[:2]] == [("a16", "running"), ("a00", "idle")]
