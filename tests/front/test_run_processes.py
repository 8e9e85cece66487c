"""`whenidle run` as a real process: turns, time limits, signals, and the commands beside it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pexpect  # type: ignore[import-untyped]  # it has no stubs here
import pytest

from .command_line import Call, Log, RunningHost, program, python
from .processes import alive, eventually, started, written

Start = Callable[..., RunningHost]

# Tells what it was given, as JSON, on its standard output.
TELL = """
import json, os, sys
told = {key: value for key, value in os.environ.items() if key.startswith("WHENIDLE_")}
print(json.dumps([sys.stdin.read(), told]))
"""
# Writes the ids of itself and of a child, both deaf to SIGTERM, and does not end.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if child := os.fork():
    open(sys.argv[1], 'w').write(f'{os.getpid()} {child}\\n')
time.sleep(3600)
"""
# Writes its id and does not end by itself, but on SIGTERM.
WAIT = """
import os, sys, time
open(sys.argv[1], 'w').write(f'{os.getpid()}\\n')
time.sleep(3600)
"""


def agent(script: str, *argv: object) -> str:
    """Return a script as an agent command."""
    return shlex.join(python(script, *map(str, argv)))


def pids(path: Path) -> list[int]:
    """Return the process ids that a script has written, once it has."""
    return [int(pid) for pid in eventually(lambda: written(path)).split()]


def instant(event: dict[str, str]) -> datetime:
    """Return when an event was decided."""
    return datetime.fromisoformat(event["at"])


def test_a_turn_runs_the_command_with_the_message_and_keeps_its_output(
    host: Start, call: Call, log: Log, store: Path
) -> None:
    """The command reads the message and is told what it is about; the host stops in order on SIGTERM."""
    running = host(agent(TELL))
    call("send", "ada", "good morning")
    (note,) = log.until("turn/note")
    data = note["data"]["data"]
    text, told = json.loads(data.pop("stdout"))
    assert text == "good morning"
    assert told == {
        "WHENIDLE_SESSION": "ada",
        "WHENIDLE_MESSAGE_ID": "m0",
        "WHENIDLE_SOURCE": "user",
        "WHENIDLE_TURN": "1",
        "WHENIDLE_ATTEMPT": "1",
        "WHENIDLE_REDELIVERED": "0",
        "WHENIDLE_PRESET": "",
        "WHENIDLE_RUN": "1",
        "WHENIDLE_STORE": str(store),
    }
    assert data.pop("durationMillis") >= 0
    assert data.pop("stdoutBytes") > 100
    assert data == {
        "command": sys.executable,
        "run": 1,
        "exitStatus": 0,
        "again": False,
        "timedOut": False,
        "timeLimit": 300,
        "stdoutTruncated": False,
        "stderr": "",
        "stderrBytes": 0,
        "stderrTruncated": False,
    }
    assert log.until("turn/end")[0]["data"]["outcome"] == "completed"
    running.process.send_signal(signal.SIGTERM)
    told_of = running.rest()
    assert told_of[0] == "host-started"
    assert told_of[-1] == "host-stopped"
    assert {"turn-started", "turn-ended", "host-stopping"} <= set(told_of)
    assert running.process.returncode == 0


def test_a_running_host_notices_other_processes(host: Start, call: Call, log: Log) -> None:
    """Each message from outside starts a turn, and a reminder one when it is due."""
    host(agent("pass"))
    for number in range(1, 4):
        call("send", "ada", "hello")
        assert len(log.until("turn/end", number)) == number
    made = call("remind", "bob", "tea", "--after", "1", "--json").json
    (delivery,) = Log(call, "bob").until("inbox/insert")
    assert instant(delivery) >= datetime.fromisoformat(made["scheduledAt"])


def test_a_failing_command_makes_the_turn_an_error(host: Start, call: Call, log: Log) -> None:
    """Its status and its last words are kept, and the agent goes on."""
    running = host(agent("import sys; sys.stderr.write('no\\x1b'); sys.exit(3)"))
    call("send", "ada", "hello")
    (end,) = log.until("turn/end")
    assert end["data"]["outcome"] == "error"
    assert end["data"]["cause"] == "CommandFailed: the command ended with exit status 3"
    (note,) = log.events("turn/note")
    assert (note["data"]["data"]["exitStatus"], note["data"]["data"]["stderr"]) == (3, "no\x1b")
    assert "exit 3" in call("log", "ada").out
    assert r"stderr: no\x1b" in call("log", "ada").out
    call("send", "ada", "again")
    log.until("turn/end", 2)
    running.process.send_signal(signal.SIGTERM)
    assert "log" not in running.rest()


def test_at_the_time_limit_the_whole_group_dies(host: Start, call: Call, log: Log, tmp_path: Path) -> None:
    """A command that ignores SIGTERM, and its child, are gone when the turn has ended as an error."""
    host(agent(DEAF, tmp_path / "pids"), "--time-limit", "2", "--shutdown-timeout", "0.4")
    call("send", "ada", "hello")
    deaf = pids(tmp_path / "pids")
    (end,) = log.until("turn/end")
    assert end["data"]["cause"] == "CommandTimedOut: the command ran longer than its time limit of 2 s"
    assert log.events("turn/note")[0]["data"]["data"]["timedOut"]
    assert [alive(pid) for pid in deaf] == [False, False]


def test_sigterm_interrupts_a_turn_and_the_next_host_gives_it_again(
    host: Start, call: Call, log: Log, tmp_path: Path
) -> None:
    """The command is ended, the turn is recorded as interrupted, and its message is redelivered."""
    running = host(agent(WAIT, tmp_path / "pids"), "--shutdown-timeout", "1")
    call("send", "ada", "hello")
    (pid,) = pids(tmp_path / "pids")
    running.process.send_signal(signal.SIGTERM)
    assert running.rest()[-1] == "host-stopped"
    assert running.process.returncode == 0
    assert not alive(pid)
    (end,) = log.events("turn/end")
    assert (end["data"]["outcome"], end["data"]["redeliver"]) == ("interrupted", True)
    host(agent(TELL))
    told = json.loads(log.until("turn/note")[0]["data"]["data"]["stdout"])[1]
    assert (told["WHENIDLE_MESSAGE_ID"], told["WHENIDLE_ATTEMPT"], told["WHENIDLE_REDELIVERED"]) == ("m0", "2", "1")


def test_a_second_signal_kills_at_once(host: Start, call: Call, tmp_path: Path) -> None:
    """A deaf command does not get its grace; the first signal decides the exit status."""
    running = host(agent(DEAF, tmp_path / "pids"), "--shutdown-timeout", "1000")
    call("send", "ada", "hello")
    deaf = pids(tmp_path / "pids")
    running.process.send_signal(signal.SIGINT)
    running.until("host-stopping")
    running.process.send_signal(signal.SIGINT)
    assert running.rest()[-1] == "host-stopped"
    assert running.process.returncode == 130
    eventually(lambda: not any(map(alive, deaf)))


def test_a_second_host_is_refused_and_names_the_first(host: Start, call: Call, store: Path) -> None:
    """Two hosts on one store are one too many; management goes on beside the first."""
    running = host("cat")
    result = call("run", "--agent", "cat")
    assert result.status == 3
    assert f"is in use by the host with process id {running.process.pid}" in result.error
    assert call("run", "--agent", "cat", "--json").json["code"] == "store_locked"
    assert call("check").out == f"{store} is sound\n"


def test_a_host_that_was_killed_leaves_a_store_that_works(host: Start, call: Call, log: Log) -> None:
    """After SIGKILL the next host takes over at once."""
    running = host("cat")
    running.process.kill()
    running.process.wait()
    host("cat")
    call("send", "ada", "hello")
    log.until("turn/end")


def test_a_host_whose_reader_goes_away_ends(host: Start, call: Call) -> None:
    """`whenidle run | head` does not live on unseen."""
    running = host("cat")
    assert running.process.stdout is not None
    running.process.stdout.close()
    call("send", "ada", "hello")
    assert running.process.wait() == 141


def test_the_agent_can_remind_itself(host: Start, call: Call, log: Log) -> None:
    """The command finds the store and its session in its environment."""
    command = shlex.join(program("remind"))
    host(f"sh -c 'if [ $WHENIDLE_TURN = 1 ]; then {command} $WHENIDLE_SESSION tea --after 1; fi'")
    call("send", "ada", "hello")
    assert '"tea"' in log.until("inbox/insert", 2)[1]["data"]["text"]


def test_lines_are_written_where_there_is_no_terminal(store: Path, call: Call, log: Log) -> None:
    """Into a pipe go plain lines without escape codes, whatever the environment says about colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TTY_COMPATIBLE": "1"}
    command = program("run", "--store", str(store), "--agent", "cat")
    with started(command, stderr=subprocess.STDOUT, env=environment) as process:
        assert process.stdout is not None
        assert f"Z  host started  store {store}, pid {process.pid}" in process.stdout.readline()
        call("send", "ada", "hello")
        log.until("turn/end")
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait() == 130
    assert "ada  turn ended  turn 1, outcome completed" in said
    assert "host stopping  cause SIGINT, seconds 10" in said
    assert "\x1b" not in said


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forkpty beside trio's threads
def test_a_terminal_shows_a_live_status_and_ctrl_c_stops(store: Path, call: Call, tmp_path: Path) -> None:
    """Agents, phases, the next reminder and what happened are on the screen and change by themselves."""
    call("remind", "bob", "tea", "--after", "3600")
    call("task", "create", "Digest", "Sum up.", "--after", "7200", "--new")
    command = program(
        "run", "--store", str(store), "--shutdown-timeout", "1", "--agent", agent(WAIT, tmp_path / "pids")
    )
    terminal = pexpect.spawn(command[0], command[1:], encoding="utf-8", dimensions=(24, 120), timeout=60)
    terminal.expect("next reminder")
    terminal.expect("bob .*in 59m")
    terminal.expect("Digest .*in 1h 59m .*new sessions")
    call("send", "ada", "hello")
    terminal.expect("ada .*running")
    terminal.expect("turn started")
    (pid,) = pids(tmp_path / "pids")
    terminal.sendintr()
    terminal.expect("host stopped")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    assert not alive(pid)


def test_a_command_is_run_as_the_options_say(host: Start, call: Call, log: Log, tmp_path: Path) -> None:
    """A script for the shell, variables, a folder of the session's own, and a run more where the first one failed."""
    script = 'test -e tried && echo "$PWD $A $B $(cat)" && exit; touch tried; exit 75'
    host(script, "--shell", "--env", "A=1", "--env", "B=x=y", "--folders", str(tmp_path / "all"), "--retries", "1")
    call("send", "ada", "$(id)")
    notes = [event["data"]["data"] for event in log.until("turn/note", 2)]
    assert [(note["run"], note["exitStatus"], note["again"]) for note in notes] == [(1, 75, True), (2, 0, False)]
    assert notes[1]["stdout"] == f"{tmp_path}/all/ada 1 x=y $(id)\n"
    assert "exit 75, " in call("log", "ada").out
    assert "will run again" in call("log", "ada").out


def test_a_status_that_is_not_named_is_not_tried_again(host: Start, call: Call, log: Log) -> None:
    """`--retry-status` narrows `--retries`; the message is an argument."""
    host(shlex.join(["sh", "-c", 'exit "$1"', "sh", "{message}"]), "--retries", "5", "--retry-status", "75,111")
    call("send", "ada", "3")
    (end,) = log.until("turn/end")
    assert end["data"]["cause"] == "CommandFailed: the command ended with exit status 3"
    assert len(log.events("turn/note")) == 1
