"""Prompts, titles, ids and logs of strangers at every exit of the command line."""

from __future__ import annotations

import io
import json
import re
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pexpect  # type: ignore[import-untyped]  # it has no stubs here
import pytest
import trio

from tests.fuzz.target import joined
from tests.fuzz.words import NASTY
from whenidle import AfterRule, Caller, CreateTask, TargetKind, open_manager
from whenidle.cli import main

from .command_line import Call, program
from .hostility import ESCAPES, EVIL, EVIL_TITLE, LINES, WHOLE, check_shown, hostile_session, strings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forkpty beside trio's threads

ARGUMENTS = ("\udcff", *(each for each in NASTY if "\0" not in each and "\ud800" not in each))
"""Those that a process can be given; the first is a byte that is not UTF-8."""


@pytest.fixture
def task(call: Call, store: Path) -> str:
    """Fill the store with nasty texts wherever there is room for one; return the id of a task."""
    assert call("import", "-", stdin=hostile_session()).status == 0

    async def fill() -> str:
        async with open_manager(str(store)) as manager:
            await manager.send("ada", EVIL)
            await manager.send("ada", LINES)
            for text in (f"x{EVIL}", f"x{LINES}y"):
                await manager.call_tool("ada", "schedule_create", {"prompt": text, "after_seconds": 3600})
            request = CreateTask(f"x{EVIL_TITLE}", f"x{EVIL}", AfterRule(3600), TargetKind.THIS_SESSION)
            made = await manager.create_task(request, Caller("ada", cwd="/x\x1b[2J", preset="\x1b]0;p\x07"))
            await manager.run_task(made.id)
            return made.id

    return trio.run(fill)


def reading(task: str) -> Sequence[tuple[str, ...]]:
    """Return every command that shows what is in a store."""
    return (
        ("log", "ada"),
        ("log", "mallory"),
        ("reminders", "ada"),
        ("reminders", "mallory"),
        ("task", "list"),
        ("task", "view", task),
        ("task", "history", task),
        ("task", "run", task),
        ("task", "pause", task),
        ("top", "--once"),
        ("check",),
    )


def test_what_people_are_shown_only_shows_itself(call: Call, task: str) -> None:
    """No control character, no change of direction, no line of somebody else's, in lines that end some time."""
    for command in reading(task):
        result = call(*command)
        check_shown(result.out)
        check_shown(result.err)
        assert max(map(len, result.out.split("\n"))) < 20_000, command
        assert result.out.count("\n") < 40, command


def test_what_programs_are_given_is_exact_and_safe(call: Call, task: str) -> None:
    """Each line is a JSON document without such characters, and the texts are the ones that were sent."""
    told: set[str] = set()
    for command in reading(task):
        result = call(*command, "--json")
        check_shown(result.out)
        assert result.err == ""
        for line in result.out.splitlines():
            told.update(strings(json.loads(line)))
    for text in (EVIL, LINES, f"x{EVIL}", f"x{LINES}y", f"x{EVIL_TITLE}", f"m0{EVIL}", f"x/{WHOLE}"):
        assert joined(text) in told


@pytest.mark.parametrize("evil", ARGUMENTS)
def test_nasty_arguments_are_refused_in_one_safe_line(call: Call, store: Path, evil: str, tmp_path: Path) -> None:
    """As an id of a session, reminder or task, as a rule, a zone, a file, an option or a command of its own."""
    call("send", "ada", "hello")
    before = sorted(tmp_path.rglob("*"))
    for command in (
        ("log", f"a/{evil}"),
        ("send", f"a/{evil}", "hello"),
        ("remind", f"a/{evil}", "tea", "--after", "60"),
        ("forget", "ada", f"schedule-1{evil}"),
        ("task", "view", f"task-1{evil}"),
        ("task", "create", "x", "y", "--rrule", f"DTSTART:{evil}", "--session", "ada"),
        ("task", "create", "x", "y", "--daily", "09:00", "--zone", f"Europe/{evil}", "--new"),
        ("preview", f"RRULE:{evil}"),
        ("export", f"a/{evil}"),
        ("log", "ada", f"--{evil}"),
        (f"x{evil}",),
        ("log", "ada", "--store", f"{store}{evil}"),
        ("import", f"{store}{evil}"),
    ):
        for options in ((), ("--json",)):
            result = call(*command, *options)
            assert result.status in {1, 2, 3}, (command, result)
            check_shown(result.out + result.err)
            assert len(result.out + result.err) < 2_000
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["../ada", "..", "/etc/ada", ".ada", "a\0b", "a/b", "a\\b", "\ud800"])
def test_a_session_from_a_file_cannot_have_a_path_for_a_name(call: Call, tmp_path: Path, name: str) -> None:
    """The import is refused, and the store has no session."""
    call("send", "bob", "hello")
    before = sorted(tmp_path.rglob("*"))
    assert call("import", "-", stdin=hostile_session(name)).status in {1, 2}
    assert sorted(tmp_path.rglob("*")) == before
    assert call("check").status == 0


class Endless(io.RawIOBase):
    """A file without end, which counts what was read of it."""

    def __init__(self) -> None:
        self.given = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0, "all of it would be read"
        self.given += size
        return b"\0" * size

    def read(self, size: int = -1, /) -> bytes:
        raise AssertionError(f"{size} bytes would be read at once")


def test_an_endless_file_is_not_read_to_its_end(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no line end for 16 MiB is refused, with the rest unread and no store made."""
    endless = Endless()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
    assert main(["import", "-", "--store", str(store), "--json"]) == 1
    assert endless.given <= 17 * 1024 * 1024
    assert not store.exists()


def test_a_terminal_is_not_told_what_to_do(store: Path, task: str) -> None:
    """On a real one, where there are colours, too: whatever comes is our own, and texts are written out."""
    for command in (*reading(task)[:6], ("top", "--once"), ("export", "ada"), ("export", "mallory")):
        argv = program(*command, "--store", str(store))
        screen = pexpect.run(" ".join(argv), timeout=60, encoding="utf-8", withexitstatus=False)
        assert not [each for each in ESCAPES if each in screen], command
        assert "\u202e" not in screen
        assert re.search(r"\\(x|u00)9b31m", screen) or "corrupt" in screen, command


def test_an_export_for_a_terminal_means_the_same(call: Call, store: Path, task: str) -> None:
    """What a terminal is given of an export can be imported, and is then the same session."""
    exact = call("export", "ada").out
    assert "\x9b31m" in exact
    command = program("export", "ada", "--store", str(store))
    screen = pexpect.run(" ".join(command), timeout=60, encoding="utf-8").replace("\r\n", "\n")
    check_shown(screen)
    other = store.with_name("other.db")
    assert call("import", "-", "--store", str(other), stdin=screen.encode()).status == 0
    assert call("export", "ada", "--store", str(other)).out == exact
