"""Stores that cannot be used, as every command tells it: status 3, one line, nothing changed."""

import functools
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

from whenidle.cli import main
from whenidle_actors.errors import StoreFull

from .command_line import Call

COMMANDS = [
    ["run", "--agent", "cat"],
    ["send", "ada", "hello"],
    ["remind", "ada", "tea", "--after", "5"],
    ["reminders", "ada"],
    ["forget", "ada", "schedule-1"],
    ["log", "ada"],
    ["export", "ada"],
    ["check"],
    ["task", "create", "Digest", "Sum up.", "--every", "600", "--new"],
    ["task", "list"],
    ["task", "run", "task-1"],
]


def another_application(path: Path) -> None:
    """Make a database that is somebody else's."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
        database.execute("PRAGMA application_id = 1234")
        database.commit()


def another_format(path: Path) -> None:
    """Make a file that is no database."""
    path.write_text("Dear diary, \x1b[31mtoday was a good day.\n" * 20)


@functools.cache
def sound_store() -> bytes:
    """Return a store of some length, made once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sound.db"
        for _ in range(20):
            assert main(["send", "ada", "hello " * 1000, "--store", str(path)]) == 0
        return path.read_bytes()


def newer_schema(path: Path) -> None:
    """Make a store of a version to come."""
    path.write_bytes(sound_store())
    with closing(sqlite3.connect(path)) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        database.execute(f"PRAGMA user_version = {version + 1}")
        database.commit()


def folder(path: Path) -> None:
    """Make a folder where the file should be."""
    path.mkdir()


def truncated(path: Path) -> None:
    """Make a store that lost its end."""
    whole = sound_store()
    path.write_bytes(whole[: len(whole) // 2 + 100])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "-".join(command[:2]))
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (another_application, "not_a_store"),
        (another_format, "not_a_store"),
        (newer_schema, "store_too_new"),
        (folder, "store_unavailable"),
        (truncated, "store_damaged"),
    ],
)
def test_a_file_that_is_no_store_of_ours_is_named_and_left_alone(
    call: Call, store: Path, make: Callable[[Path], None], code: str, command: list[str]
) -> None:
    """The error names the file and says what it is; not a byte of it changes."""
    make(store)
    before = store.read_bytes() if store.is_file() else b""
    result = call(*command)
    assert result.status == 3
    assert str(store) in result.error
    assert "\x1b" not in result.error
    assert call(*command, "--json").json["code"] == code
    assert (store.read_bytes() if store.is_file() else b"") == before


@pytest.mark.parametrize("command", [["run", "--agent", "cat"], ["send", "ada", "hello"], ["check"]])
def test_a_path_that_cannot_be_is_refused(call: Call, tmp_path: Path, command: list[str]) -> None:
    """A missing folder and an empty name are told as such."""
    for path in (str(tmp_path / "no" / "such" / "store.db"), ""):
        result = call(*command, "--store", path)
        assert result.status == 3
        assert len(result.error) > 20
        assert call(*command, "--store", path, "--json").json["code"] == "store_unavailable"


def test_a_path_that_is_not_utf8_is_as_good_as_any(call: Call, tmp_path: Path) -> None:
    """A store may have a file name of any bytes; where it is told of, they are written out."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9%3f.db")
    assert call("send", "ada", "hello", "--store", path).out == "queued m0 for ada\n"
    assert call("log", "ada", "--store", path).out.endswith("hello\n")
    assert call("check", "--store", path).out == f"{tmp_path}/caf\\udce9%3f.db is sound\n"
    assert Path(path) in tmp_path.iterdir()


def test_the_store_comes_from_the_option_then_the_variable_then_the_working_directory(
    call: Call, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--store`, else `WHENIDLE_STORE`, else `whenidle.db` here."""
    monkeypatch.chdir(tmp_path)
    call("send", "ada", "hello")
    assert store.exists()
    call("send", "ada", "hello", "--store", "other.db")
    assert (tmp_path / "other.db").exists()
    monkeypatch.delenv("WHENIDLE_STORE")
    call("send", "ada", "hello")
    assert (tmp_path / "whenidle.db").exists()


def test_a_full_disk_is_told_and_leaves_what_was_there(
    call: Call, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is refused, not half done, and the status says that the store is the reason."""
    call("send", "ada", "hello")
    before = call("log", "ada").out

    async def full(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise StoreFull(f"{store}: no room for the commit")

    with monkeypatch.context() as broken:
        broken.setattr("whenidle_actors.stores.sqlite.SqliteStore.commit", full)
        result = call("send", "ada", "again")
        assert (result.status, result.error) == (3, f"{store}: no room for the commit")
        assert call("remind", "ada", "tea", "--after", "5", "--json").json["code"] == "persistence_uncertain"
    assert call("log", "ada").out == before


def test_a_fault_of_our_own_is_one_line_and_on_request_a_traceback(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong, nobody gets a traceback who did not ask for one."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("\x1b[31mno")

    monkeypatch.setattr("whenidle.cli.messages.check_session_id", broken)
    result = call("send", "ada", "hello")
    assert (result.status, result.error) == (70, r"a fault in whenidle: ZeroDivisionError: \x1b[31mno")
    assert call("send", "ada", "hello", "--json").json["code"] == "internal_error"
    monkeypatch.setenv("WHENIDLE_TRACEBACK", "1")
    assert "Traceback" in call("send", "ada", "hello").err
