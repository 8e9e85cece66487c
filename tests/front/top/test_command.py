"""`whenidle top` as people and programs use it: beside a host, without one, on a terminal and in a pipe."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pexpect  # type: ignore[import-untyped]  # it has no stubs here
import pytest

from tests.front.command_line import program
from tests.front.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.front.command_line import Call, RunningHost

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forkpty beside trio's threads

SIZE = (24, 80)


@pytest.fixture
def terminal(store: Path) -> Iterator[Callable[..., pexpect.spawn]]:
    """Return what starts `whenidle top` on a terminal of the usual size."""
    started = list[pexpect.spawn]()

    def start(interval: str = "0.2") -> pexpect.spawn:
        command = program("top", "--store", str(store), "--interval", interval)
        spawned = pexpect.spawn(command[0], command[1:], encoding="utf-8", dimensions=SIZE, timeout=60)
        started.append(spawned)
        return spawned

    yield start
    for each in started:
        each.close(force=True)


def ended(terminal: pexpect.spawn) -> int | None:
    """Return the exit status, once there is one."""
    terminal.expect(pexpect.EOF)
    terminal.close()
    status: int | None = terminal.exitstatus
    return status


def test_a_host_is_seen_at_work(
    store: Path, call: Call, host: Callable[..., RunningHost], terminal: Callable[..., pexpect.spawn]
) -> None:
    """Phase and turn while a command runs, the countdown, deliveries with lateness; q leaves the terminal as it was."""
    running = host("sleep 3600", "--shutdown-timeout", "1")
    call("remind", "bob", "tea", "--after", "3600")
    screen = terminal()
    screen.expect(rf"host {running.process.pid}")
    screen.expect(r"in 59m \d\ds +reminder +bob")
    call("send", "ada", "hello")
    screen.expect(r"ada +running +0 +0 +1, \d")
    call("remind", "eve", "now", "--after", "1")
    screen.expect(r"eve +schedule-1 +on time")
    screen.send("q")
    screen.expect(r"\x1b\[\?1049l")
    assert ended(screen) == 0


def test_without_a_host_the_store_is_read(
    call: Call, host: Callable[..., RunningHost], terminal: Callable[..., pexpect.spawn]
) -> None:
    """A host that starts is taken over to, and when it is killed the store says what its log does."""
    call("remind", "bob", "tea", "--after", "3600")
    screen = terminal()
    screen.expect("no host answers")
    screen.expect(r"bob +asleep +- +0 +-")
    running = host("sleep 3600")
    screen.expect(rf"host {running.process.pid}")
    call("send", "ada", "hello")
    screen.expect("ada +running")
    running.process.kill()
    screen.expect("no host answers")
    screen.expect(r"ada +turn open +- +0 +1")
    screen.sendintr()
    assert ended(screen) == 130


def test_keys_scroll_and_pause(call: Call, terminal: Callable[..., pexpect.spawn]) -> None:
    """What is out of sight comes into it; paused, the picture stands still until p is pressed again."""
    for number in range(30):
        call("remind", f"s{number:02}", "tea", "--after", str(3600 + number))
    screen = terminal()
    screen.expect(r"agents 1-\d+ of 30")
    screen.send("j")
    screen.expect(r"agents 2-\d+ of 30")
    screen.send("\x1b[B\x1b[B")
    screen.expect(r"agents 4-\d+ of 30")
    screen.send("\x1b[6~")
    screen.expect(r"agents 14-\d+ of 30")
    screen.send("k")
    screen.expect(r"agents 13-\d+ of 30")
    screen.send("p")
    screen.expect("paused")
    call("remind", "more", "tea", "--after", "10")
    screen.send("p")
    screen.expect("of 31")
    screen.send("q")
    assert ended(screen) == 0


def test_a_terminal_may_change_its_size(call: Call, terminal: Callable[..., pexpect.spawn]) -> None:
    """The next picture fits, at once and not at the next look."""
    for number in range(30):
        call("remind", f"s{number:02}", "tea", "--after", str(3600 + number))
    screen = terminal("3600")
    screen.expect(r"agents 1-\d+ of 30")
    screen.setwinsize(40, 100)
    screen.expect(r"agents 1-1\d of 30")
    screen.setwinsize(8, 30)
    screen.expect(r"agents 1-4 of 30")
    screen.send("q")
    assert ended(screen) == 0


def test_without_keys_it_shows_until_it_is_told_to_stop(store: Path, call: Call) -> None:
    """Standard input may be anything; a signal ends it, and the terminal is put back."""
    call("remind", "bob", "tea", "--after", "3600")
    command = " ".join(program("top", "--store", str(store)))
    screen = pexpect.spawn("sh", ["-c", f"exec {command} </dev/null"], encoding="utf-8", dimensions=SIZE, timeout=60)
    screen.expect("bob +asleep")
    screen.kill(signal.SIGINT)
    screen.expect(r"\x1b\[\?1049l")
    assert ended(screen) == 130


def test_once_it_shows_everything(call: Call) -> None:
    """As lines, to be kept or searched, of all agents however many; and a pipe means once."""
    for number in range(30):
        call("remind", f"s{number:02}", "tea", "--after", str(3600 + number))
    for options in (["--once"], []):
        lines = call("top", *options).out.splitlines()
        assert "no host answers" in lines[0]
        assert sum(line.startswith("s") and "asleep" in line for line in lines) == 30
        assert "\x1b" not in "".join(lines)


def test_once_as_json_it_is_one_document(store: Path, call: Call, host: Callable[..., RunningHost]) -> None:
    """With the store's view, and with that of a host when there is one."""
    call("remind", "bob", "tea", "--after", "3600")
    told = call("top", "--once", "--json").json
    assert (told["pid"], [agent["session"] for agent in told["agents"]]) == (None, ["bob"])
    running = host("cat")
    told = call("top", "--once", "--json").json
    assert (told["pid"], told["store"], told["steps"]) == (running.process.pid, str(store), [])


def test_as_json_it_is_a_document_a_look(store: Path, call: Call) -> None:
    """One line each, until the reader is gone."""
    call("remind", "bob", "tea", "--after", "3600")
    command = program("top", "--json", "--interval", "0.05", "--store", str(store))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        documents = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdout.close()
        assert process.wait(60) == 141
    assert [document["coming"][0]["where"] for document in documents] == ["bob"] * 3


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf", "soon"])
def test_an_interval_is_a_time(call: Call, interval: str) -> None:
    """Anything else is a matter of usage."""
    call("remind", "bob", "tea", "--after", "3600")
    assert call("top", "--once", "--interval", interval).status == 2


def test_a_store_that_is_not_there_is_not_made(store: Path, call: Call) -> None:
    """Looking makes nothing."""
    assert call("top", "--once").status == 3
    assert not store.exists()


def test_a_run_host_serves_its_status_and_takes_it_away(store: Path, host: Callable[..., RunningHost]) -> None:
    """The socket is there before the host says that it has started, and goes with it."""
    running = host("cat")
    socket = store.with_name(store.name + "-status")
    assert socket.is_socket()
    running.stop()
    assert eventually(lambda: not socket.exists())
    assert {path.name for path in store.parent.iterdir()} <= {store.name, f"{store.name}-host"}
