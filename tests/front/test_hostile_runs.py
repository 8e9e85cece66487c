"""Prompts of strangers on their way through a host: into frames, commands, spans, and never into a path or a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.fuzz.target import joined
from tests.fuzz.words import NASTY
from whenidle import (
    AfterRule,
    AtRule,
    Caller,
    CommandAgent,
    CreateTask,
    MemoryStore,
    Reminders,
    SqliteStore,
    TargetKind,
    Tasks,
    VirtualClock,
    open_host,
)
from whenidle.command_report import CommandFailed
from whenidle_actors.stores.base import SessionHeader
from whenidle_clock import EPOCH

from .command_line import python
from .command_turns import FakeTurn
from .hostility import EVIL, EVIL_TITLE, LINES, check_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from whenidle import Store, Turn

PROMPTS = (*(f"x{each}y" for each in NASTY), f"x{EVIL}", f"x{LINES}y")
TELL = """
import json, os, sys
told = {key: value for key, value in os.environ.items() if key.startswith("WHENIDLE_")}
print(json.dumps([sys.argv[1:], sys.stdin.buffer.read().decode(), told, os.getcwd()]))
"""


@pytest.fixture
def clock() -> VirtualClock:
    """Return the clock of the host, which is that of the test."""
    return VirtualClock(autojump=True)


class Told:
    """A turn function that keeps what it is given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def __call__(self, turn: Turn) -> None:
        self.texts += [message.text for message in turn.messages]


@pytest.mark.parametrize("make", [lambda _: MemoryStore(), lambda folder: SqliteStore(folder / "a.db")])
async def test_reminders_come_with_the_very_prompts(
    clock: VirtualClock, tmp_path: Path, make: Callable[[Path], Store]
) -> None:
    """However nasty: each frame has its own lines and no more, and its JSON is the prompt that was saved."""
    told = Told()
    async with open_host(store=make(tmp_path), turn=told, clock=clock) as host:
        agent = await host.create_agent("ada")
        for number, prompt in enumerate(PROMPTS):
            await agent.call_tool("schedule_create", {"prompt": prompt, "after_seconds": 60 + number})
            await agent.call_tool("schedule_create", {"prompt": prompt, "every_seconds": 3600})
        await clock.sleep_until(clock.now() + timedelta(seconds=3601))
        await agent.when_idle()
    *singles, batch = told.texts
    for prompt, text in zip(PROMPTS, singles, strict=True):
        heading, _, *lines = text.split("\n")
        assert (heading, len(lines)) == ("[SCHEDULE REMINDER]", 3)
        assert json.loads(lines[2].removeprefix("reminder_prompt_json: ")) == joined(prompt)
    heading, _, last = batch.split("\n")
    assert heading == "[SCHEDULE REMINDER BATCH]"
    due = json.loads(last.removeprefix("reminders_json: "))
    assert [each["reminder_prompt"] for each in due] == [joined(prompt) for prompt in PROMPTS]


@pytest.mark.parametrize("make", [lambda _: MemoryStore(), lambda folder: SqliteStore(folder / "a.db")])
async def test_tasks_come_with_the_very_prompts_and_titles(
    clock: VirtualClock, tmp_path: Path, make: Callable[[Path], Store]
) -> None:
    """One by one and several together; no line break of any kind stands in what is theirs."""
    told, tasks, begun = Told(), Tasks(), clock.now()
    async with open_host(store=make(tmp_path), turn=told, clock=clock, suites=[tasks]) as host:
        agent = await host.create_agent("ada")
        for number, prompt in enumerate((*PROMPTS, *PROMPTS)):
            rule = AtRule(begun + timedelta(seconds=60 + min(number, len(PROMPTS))))
            title = f"x{EVIL_TITLE}"
            await tasks.desk.create(CreateTask(title, prompt, rule, TargetKind.THIS_SESSION), Caller("ada"))
        await clock.sleep_until(clock.now() + timedelta(seconds=600))
        await agent.when_idle()
    found = [each for text in told.texts for each in tasks_in(text)]
    assert sorted(found) == sorted((joined(f"x{EVIL_TITLE}"), joined(prompt)) for prompt in PROMPTS * 2)


def tasks_in(text: str) -> list[tuple[str, str]]:
    """Return titles and prompts of a message, which has the lines of its form and no others."""
    heading, _, *lines = text.splitlines()
    if heading == "[SCHEDULED TASK]":
        assert len(lines) == 7
        return [(json.loads(lines[1].removeprefix("title_json: ")), json.loads(lines[6].removeprefix("prompt_json: ")))]
    [line] = lines
    return [(each["title"], each["prompt"]) for each in json.loads(line.removeprefix("tasks_json: "))]


@pytest.mark.parametrize("text", [*NASTY, EVIL])
async def test_a_command_is_given_texts_and_never_a_shell(tmp_path: Path, text: str) -> None:
    """On standard input to the byte, in an argument all but NUL, and nothing of it is carried out."""
    argv = python(TELL, "--", "a={message}", "{message}")
    whole = text.encode("utf-8", "replace").decode()
    for agent in (CommandAgent(argv=tuple(python(TELL))), CommandAgent(argv=tuple(argv))):
        turn = FakeTurn(cwd=str(tmp_path))
        turn.messages = (type(turn.messages[0])("m4", turn.messages[0].lane, True, text, turn.messages[0].source),)
        await agent(cast("Turn", turn))
        given, stdin, told, folder = json.loads(turn.notes[0]["stdout"])
        assert folder == str(tmp_path)
        assert told["WHENIDLE_SESSION"] == "ada"
        assert not any(value == whole for value in told.values())
        if agent.argv == tuple(argv):
            shown = whole.replace("\0", "\ufffd")
            assert (given, stdin) == (["--", f"a={shown}", shown], "")
        else:
            assert (given, stdin) == ([], whole)
    assert within(tmp_path) == []


@pytest.mark.parametrize("name", ["../owned", "/owned", "..", ".owned", "a/b"])
async def test_a_folder_is_made_of_nothing_but_a_session_id(tmp_path: Path, name: str) -> None:
    """A header that has another, from a store that somebody else wrote, fails the turn and makes no folder."""
    folders = tmp_path / "inside" / "folders"
    turn = FakeTurn()

    class Tampered(FakeTurn):
        @property
        def agent(self) -> object:
            agent: Any = turn.agent
            agent.header = SessionHeader(name, EPOCH)
            return agent

    with pytest.raises(CommandFailed, match="session id"):
        await CommandAgent(argv=tuple(python("pass")), folders=folders)(cast("Turn", Tampered()))
    assert within(tmp_path) == []


_STARTING = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pty.spawn"}
_CHANGING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "sqlite3.connect"}


def _writes(flags: object) -> bool:
    """Return whether a file that is opened so can be written to."""
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def within(folder: Path) -> list[str]:
    """Return the names of all that is in a folder."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


class Audit:
    """What this process opens, makes, renames, removes and starts."""

    def __init__(self) -> None:
        self.on = False
        self.paths: list[str] = []
        self.started: list[object] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on and event in _STARTING:
            self.started.append((event, arguments))
        if self.on and (event in _CHANGING or (event == "open" and _writes(arguments[2]))):
            self.paths.append(str(arguments[0]))

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Take note of what happens inside."""
        self.on = True
        try:
            yield
        finally:
            self.on = False


@pytest.fixture(scope="module")
def audit() -> Audit:
    """Return the audit of this process: there is one, since a hook cannot be taken off."""
    return Audit()


async def test_nothing_outside_the_store_is_touched_and_nothing_started(
    clock: VirtualClock, tmp_path: Path, audit: Audit
) -> None:
    """Whatever prompts, titles, presets, folders and ids say, files are those of the store, and there is no process."""
    store = tmp_path / "data" / "a.db"
    store.parent.mkdir()
    tasks = Tasks(presets=())
    ids = ("a..b", "-rf", "C:", "con", "__pycache__", "x" * 128)
    with audit.hearing():
        async with open_host(store=str(store), turn=Told(), clock=clock, suites=[Reminders(), tasks]) as host:
            for name in ids:
                agent = await host.create_agent(name, cwd="../../etc", preset="r")
                await agent.followup(EVIL)
                for prompt in PROMPTS:
                    await agent.call_tool("schedule_create", {"prompt": prompt, "after_seconds": 60})
                request = CreateTask(f"x{EVIL_TITLE}", f"x{EVIL}", AfterRule(60), TargetKind.NEW)
                await tasks.desk.create(request, Caller(name, cwd="/etc/../x", preset="../x"))
            await clock.sleep_until(clock.now() + timedelta(seconds=120))
            for agent in host.agents:
                await agent.when_idle()
    assert audit.started == []
    names = {os.path.realpath(path.removeprefix("file:").partition("?")[0]) for path in audit.paths}  # noqa: ASYNC240 - all is over
    assert names
    assert all(name.startswith(str(store)) for name in names), names
    assert all(name == "data" or name.startswith("data/a.db") for name in within(tmp_path))


FLOOD = """
import resource, sys
import trio
from whenidle.process_group import Limits, Program, run_group

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def run(count):
    argv = ["head", "-c", str(count), "/dev/zero"]
    return await run_group(Program(argv, {"PATH": "/usr/bin:/bin"}), stdin=b"", limits=Limits(300, 5, 65536),
                           hurry=trio.Event())

trio.run(run, 10_000_000)
before = peak()
finished = trio.run(run, 1 << 30)
print(finished.status, finished.stdout.total_bytes, len(finished.stdout.text), peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux")
def test_a_gigabyte_of_output_is_not_kept() -> None:
    """A command that writes so much ends well; its end is kept, and memory grows by less than a sixteenth of it."""
    done = subprocess.run([sys.executable, "-c", FLOOD], capture_output=True, text=True, check=True)
    status, total, kept, growth = map(int, done.stdout.split())
    assert (status, total, kept) == (0, 1 << 30, 65_536)
    assert growth < 64 * 1024


async def test_spans_and_metrics_have_no_words_of_others(clock: VirtualClock) -> None:
    """No attribute, name, event or status of any holds a prompt, a title, a message or a reason."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415

    from whenidle.telemetry import instrument  # noqa: PLC0415

    exporter, reader, tracers = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters, tasks = MeterProvider([reader]), Tasks()

    async def fail(turn: Turn) -> None:
        raise ValueError(turn.messages[0].text)

    async with open_host(store=MemoryStore(), turn=fail, clock=clock, suites=[tasks]) as host:
        with instrument(host, tracer_provider=tracers, meter_provider=meters):
            agent = await host.create_agent("ada", cwd="/owned", preset="owned")
            await agent.followup(EVIL)
            await agent.call_tool("schedule_create", {"title": "owned", "prompt": EVIL, EVIL: EVIL})
            request = CreateTask("x owned", f"x{EVIL}", AfterRule(60), TargetKind.THIS_SESSION)
            await tasks.desk.create(request, Caller("ada"))
            await clock.sleep_until(clock.now() + timedelta(seconds=120))
            await agent.when_idle()
            await agent.cancel(EVIL)
            metrics = reader.get_metrics_data()
    spans = exporter.get_finished_spans()
    assert {span.name for span in spans} >= {"whenidle turn", "whenidle delivery", "execute_tool schedule_create"}
    for text in (*(span.to_json() for span in spans), metrics.to_json() if metrics else ""):
        assert "owned" not in text, text
        check_shown(text)
    tracers.shutdown()
    meters.shutdown()
