"""`send`, `log`, `export`, `import` and `check`."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from .command_line import Call, Log, program
from .processes import started


def test_a_message_makes_its_session_and_is_in_the_log(call: Call) -> None:
    """`send` answers with the message's id, and `log` shows the message."""
    assert call("send", "ada", "good morning").out == "queued m0 for ada\n"
    assert call("send", "ada", "again", "--json").json == {"session": "ada", "messageId": "m1"}
    assert re.fullmatch(
        r"    0  \S+Z  inbox/insert     m0 \(user, next-turn\): good morning\n"
        r"    1  \S+Z  inbox/insert     m1 \(user, next-turn\): again\n",
        call("log", "ada").out,
    )


def test_with_json_the_log_is_one_event_a_line(call: Call, log: Log) -> None:
    """Each line has the number, the instant, the type and the data."""
    call("send", "ada", "-", stdin="né\n\x1b".encode())
    (event,) = log.events()
    assert event == {
        "seq": 0,
        "at": event["at"],
        "type": "inbox/insert",
        "data": {"id": "m0", "lane": "next-turn", "wake": True, "text": "né\n\x1b", "source": "user"},
    }


def test_a_message_may_be_long_but_not_endless(call: Call, log: Log, store: Path) -> None:
    """A message of more than the host's limit is refused, and nothing is made for it."""
    result = call("send", "ada", "-", stdin=b"x" * (1024 * 1024 + 1))
    assert result.status == 2
    assert "1048576" in result.error
    assert not store.exists()
    assert call("send", "ada", "-", stdin=b"x" * 1024 * 1024).status == 0
    assert len(log.events()[0]["data"]["text"]) == 1024 * 1024
    assert "(+1048256 characters)" in call("log", "ada").out


def test_follow_shows_what_other_processes_append(call: Call, store: Path) -> None:
    """`log --follow` begins with what is there and goes on until Ctrl-C, which is status 130."""
    call("send", "ada", "first")
    command = program("log", "ada", "--follow", "--json", "--store", str(store))
    with started(command, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        assert json.loads(follower.stdout.readline())["data"]["text"] == "first"
        call("send", "bob", "not for ada")
        call("send", "ada", "second")
        assert json.loads(follower.stdout.readline())["data"]["text"] == "second"
        follower.send_signal(2)
        assert follower.stdout.read() == ""
        assert follower.wait() == 130
        assert follower.stderr.read() == ""


def test_a_reader_that_goes_away_ends_the_command_quietly(call: Call, store: Path) -> None:
    """`whenidle log ... | head` ends with status 141 and says nothing."""
    for _ in range(2):
        call("send", "ada", "-", stdin=b"x" * 1_000_000)
    command = program("log", "ada", "--json", "--store", str(store))
    with started(command, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_that_cannot_be_written_is_a_failure(call: Call, store: Path) -> None:
    """A full disk under standard output is told on standard error and is not success."""
    call("send", "ada", "hello")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            program("log", "ada", "--store", str(store)), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_session_moves_by_export_and_import(call: Call, tmp_path: Path) -> None:
    """What was exported and imported exports as the same bytes, and the copy works on."""
    call("remind", "ada", "tea", "--after", "90")
    call("send", "ada", "né\x07")
    text = call("export", "ada").out
    assert len(text.splitlines()) == 3
    file = tmp_path / "ada.jsonl"
    assert call("export", "ada", "-o", str(file)).out == f"wrote the 2 events of ada to {file}\n"
    assert file.read_text() == text
    other = str(tmp_path / "other.db")
    assert call("import", str(file), "--store", other).out == "imported ada with 2 events\n"
    assert call("export", "ada", "--output", "-", "--store", other).out == text
    assert call("reminders", "ada", "--store", other, "--json").json[0]["prompt"] == "tea"
    third = str(tmp_path / "third.db")
    assert call("import", "-", "--json", "--store", third, stdin=text.encode()).json == {
        "session": "ada",
        "events": 2,
    }


def test_an_import_is_all_or_nothing(call: Call, tmp_path: Path, store: Path) -> None:
    """A torn file is named with its line, and makes no store; a session that exists is not touched."""
    call("send", "ada", "hello", "--store", str(tmp_path / "other.db"))
    text = call("export", "ada", "--store", str(tmp_path / "other.db")).out
    torn = tmp_path / "torn.jsonl"
    torn.write_text(text[:-10])
    result = call("import", str(torn))
    assert result.status == 1
    assert result.error.startswith(f"{torn}, line 2: ")
    assert not store.exists()
    assert call("import", "-", stdin=b"").error.startswith("standard input, line 1: the file is empty")
    assert call("import", "-", stdin=text.encode()).status == 0
    result = call("import", "-", "--json", stdin=text.encode())
    assert result.status == 1
    assert result.json == {"code": "session_exists", "message": "session 'ada' exists already"}
    assert call("import", str(tmp_path / "nowhere")).error.endswith(f"No such file or directory: '{tmp_path}/nowhere'")


def test_an_export_leaves_a_file_alone_until_it_has_all_of_it(call: Call, tmp_path: Path) -> None:
    """A folder that is not there is an error, and so is a folder in place of the file."""
    call("send", "ada", "hello")
    assert call("export", "ada", "-o", str(tmp_path / "no" / "file")).status == 1
    assert call("export", "ada", "-o", str(tmp_path)).status == 1
    assert sorted(path.suffix for path in tmp_path.iterdir() if "part" in path.name) == []


def test_an_export_goes_into_a_pipe_as_it_is(call: Call, tmp_path: Path) -> None:
    """A named pipe is written to and not replaced by a file."""
    call("send", "ada", "hello")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with started(["cat", str(pipe)]) as reader:
        assert call("export", "ada", "-o", str(pipe)).status == 0
        assert reader.stdout is not None
        assert reader.stdout.read().count("\n") == 2
    assert pipe.is_fifo()


def test_check_tells_a_sound_store_from_a_damaged_one(call: Call, store: Path) -> None:
    """Status 0 and one line for a sound store; status 3 and no change for a damaged one."""
    for number in range(50):
        call("send", f"s{number}", "hello " * 200) if number % 10 == 0 else None
    assert call("check").out == f"{store} is sound\n"
    assert call("check", "--json").json == {"store": str(store), "sound": True, "faults": []}
    content = bytearray(store.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    store.write_bytes(content)
    result = call("check")
    assert result.status == 3
    assert result.out + result.err
    assert call("check", "--json").status == 3
    assert store.read_bytes() == bytes(content)
