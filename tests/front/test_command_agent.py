"""A turn function that runs a command."""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
import trio.testing

from whenidle.command_agent import IDS_TOLD, CommandAgent
from whenidle.command_report import CommandFailed, CommandTimedOut
from whenidle.command_retries import Retries
from whenidle.command_template import command_line
from whenidle_actors.errors import InvalidArgument
from whenidle_actors.stores.base import SessionHeader
from whenidle_protocol import Lane, Message, Source

from .processes import alive, eventually_async, written

if TYPE_CHECKING:
    from whenidle import Turn
from .command_turns import FakeTurn, agent, run


def relative_script(folder: Path) -> str:
    """Make a script that tells its working directory, and return a path to it from ours."""
    script = folder / "tool"
    script.write_text("#!/bin/sh\npwd\n")
    script.chmod(0o755)
    return os.path.relpath(script)


async def test_several_messages_are_given_in_order_with_their_ids_and_sources() -> None:
    """An empty line separates the messages; ids and sources are in the same order."""
    script = "import os, sys; print([sys.stdin.read(), *(os.environ['WHENIDLE_' + key] for key in sys.argv[1:])])"
    messages = (
        Message("m4", Lane.NEXT_STEP, False, "first", Source.USER),
        Message("m2", Lane.NEXT_TURN, True, "né\ud800", Source.SCHEDULE),
    )
    note = await run(
        agent(script, "MESSAGE_ID", "SOURCE", "TURN", "ATTEMPT", "REDELIVERED", "X", environment={"WHENIDLE_X": "y"}),
        FakeTurn(messages, attempt=2),
    )
    assert note["stdout"] == "['first\\n\\nné?', 'm4,m2', 'user,schedule', '3', '2', '1', 'y']\n"


async def test_the_session_s_folder_is_the_command_s(tmp_path: Path) -> None:
    """A session with a working directory runs its command there, also one given by a relative path."""
    made_elsewhere = CommandAgent(argv=command_line(relative_script(tmp_path)))
    note = await run(made_elsewhere, FakeTurn(cwd=str(tmp_path)))
    assert note["stdout"] == f"{tmp_path}\n"
    assert note["command"].endswith("/tool")


async def test_a_command_that_cannot_start_is_noted_and_fails_the_turn(tmp_path: Path) -> None:
    """A folder that is gone fails this turn, not the agent."""
    turn = FakeTurn(cwd=str(tmp_path / "gone"))
    with pytest.raises(CommandFailed, match=r"could not be started: .*gone") as failed:
        await run(agent("pass"), turn)
    assert failed.value.exit_status is None
    assert turn.notes[0]["exitStatus"] is None
    assert "gone" in turn.notes[0]["error"]


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ("raise SystemExit(3)", 3, "the command ended with exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", -9, "the command was ended by SIGKILL"),
        ("import os; os.kill(os.getpid(), 40)", -40, "the command was ended by signal 40"),
    ],
)
async def test_how_a_command_failed_is_noted_and_said(script: str, status: int, message: str) -> None:
    """The note comes first, then the exception that ends the turn as an error."""
    turn = FakeTurn()
    with pytest.raises(CommandFailed, match=f"^{message}$") as failed:
        await run(agent(script), turn)
    assert failed.value.exit_status == status
    assert turn.notes[0]["exitStatus"] == status


async def test_at_the_time_limit_the_output_so_far_is_noted(
    tmp_path: Path, mock_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """A command without an end is stopped, noted and reported as out of time."""
    script = "import sys, time; print('so far', flush=True); open(sys.argv[1], 'w').write('x\\n'); time.sleep(3600)"
    turn = FakeTurn()
    outcome: list[CommandTimedOut] = []

    async def call() -> None:
        with pytest.raises(CommandTimedOut) as caught:
            await run(agent(script, str(tmp_path / "pid"), time_limit=60), turn)
        outcome.append(caught.value)

    nursery.start_soon(call)
    await eventually_async(lambda: written(tmp_path / "pid"))
    await trio.testing.wait_all_tasks_blocked()
    mock_clock.jump(60)
    await eventually_async(lambda: outcome)
    assert str(outcome[0]) == "the command ran longer than its time limit of 60 s"
    assert (turn.notes[0]["timedOut"], turn.notes[0]["stdout"]) == (True, "so far\n")


async def test_a_cancelled_turn_leaves_no_process_and_no_note(tmp_path: Path) -> None:
    """A turn that is aborted is told of by the runtime, not by the command."""
    script = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); time.sleep(3600)"
    turn = FakeTurn()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, agent(script, str(tmp_path / "pid")), turn)
        pid = int(await eventually_async(lambda: written(tmp_path / "pid")))
        nursery.cancel_scope.cancel()
    assert not alive(pid)
    assert turn.notes == []


async def test_output_is_bounded_in_the_note() -> None:
    """The longest note a command can cause fits a store's limit, even where every byte is escaped."""
    note = await run(agent("import sys; [s.write('\\1' * 10**6) for s in (sys.stdout, sys.stderr)]"), FakeTurn())
    assert (note["stdoutBytes"], note["stdoutTruncated"], note["stderrTruncated"]) == (10**6, True, True)
    assert len(note["stdout"]) == 65_536
    assert len(json.dumps(note)) < 1024 * 1024


@pytest.mark.parametrize(("limit", "kept"), [(100, 100), (1, 1), (65_536, 4_778)])
async def test_output_is_cut_to_what_the_host_takes(limit: int, kept: int) -> None:
    """A host whose messages may not be long gets a shorter end, not a turn that fails."""
    note = await run(agent("print('x' * 10**5, end='')", output_limit=limit), FakeTurn(max_message_bytes=65_536))
    assert (len(note["stdout"]), note["stdoutTruncated"]) == (kept, True)


async def test_more_ids_than_an_environment_takes_are_cut() -> None:
    """A hundred thousand messages are one turn all the same."""
    messages = tuple(Message(f"m{number}", Lane.NEXT_STEP, False, "x", Source.USER) for number in range(100_000))
    note = await run(agent("import os; print(os.environ['WHENIDLE_MESSAGE_ID'].count(','))"), FakeTurn(messages))
    assert note["stdout"] == f"{IDS_TOLD - 1}\n"


async def test_the_environment_may_depend_on_the_session() -> None:
    """A function is asked with the session's header; what the runtime tells goes before all of it."""

    def variables(header: SessionHeader) -> dict[str, str]:
        return {"LEVEL": header.preset.upper(), "WHENIDLE_SESSION": "somebody-else"}

    script = "import os; print(*(os.environ[key] for key in ('LEVEL', 'WHENIDLE_SESSION', 'WHENIDLE_PRESET')))"
    note = await run(agent(script, environment=variables), FakeTurn())
    assert note["stdout"] == "WRITER ada writer\n"


async def test_sessions_without_a_folder_get_one_each(tmp_path: Path) -> None:
    """It is made with the first turn, for nobody else to read, and a session's own folder goes before it."""
    here = agent("import os; print(os.getcwd())", folders=tmp_path / "all")
    for _ in range(2):
        note = await run(here, FakeTurn())
        assert note["stdout"] == f"{tmp_path}/all/ada\n"
    assert (tmp_path / "all" / "ada").stat().st_mode & 0o777 == 0o700
    assert (await run(here, FakeTurn(cwd="/")))["stdout"] == "/\n"


ARGUMENTS = "import sys; print([*sys.argv[1:], sys.stdin.read()])"


@pytest.mark.parametrize(
    ("argv", "text", "expected"),
    [
        (["-p", "{message}"], "$(id) `id` 'x' \n;", ["-p", "$(id) `id` 'x' \n;", ""]),
        (["--say={message}!", "${message}"], "--help", ["--say=--help!", "${message}", ""]),
        (["{message}"], "--help", [" --help", ""]),
        (["{message}", "--", "{message}"], "-x", [" -x", "--", "-x", ""]),
        (["{message}"], "a\0b\ud800", ["a\ufffdb?", ""]),
        (["{message}"], "{message} \\\\1", ["{message} \\\\1", ""]),
        (["{x}"], "hello", ["{x}", "hello"]),
    ],
)
async def test_a_message_is_one_argument_whatever_it_says(argv: list[str], text: str, expected: list[str]) -> None:
    """No shell sees it, it is no option, and what an argument cannot hold is replaced; standard input is empty then."""
    note = await run(agent(ARGUMENTS, *argv), FakeTurn((Message("m0", Lane.NEXT_TURN, True, text, Source.USER),)))
    assert note["stdout"] == f"{expected}\n"


async def test_a_message_that_is_too_long_for_an_argument_fails_its_turn() -> None:
    """It says what to do instead, and is not tried again."""
    turn = FakeTurn((Message("m0", Lane.NEXT_TURN, True, "x" * 10**6, Source.USER),))
    too_long = agent("pass", "{message}", retries=Retries(runs=3))
    with pytest.raises(CommandFailed, match=r"the message is too long .* from standard input"):
        await run(too_long, turn)
    assert turn.notes[0]["again"] is False
    with pytest.raises(CommandFailed, match="arguments and environment are too long"):
        await run(agent("pass", environment={"X": "x" * 10**6}), FakeTurn())


async def test_a_folder_that_can_be_none_fails_the_turn() -> None:
    """A header is not checked when it is made; a NUL in it is a failure of its turns, nothing worse."""
    with pytest.raises(CommandFailed, match="could not be started"):
        await run(agent("pass"), FakeTurn(cwd="a\0b"))


async def test_a_command_has_a_bound_of_its_own(tmp_path: Path, nursery: trio.Nursery) -> None:
    """The second run begins when the first has ended; waiting does not count as running."""
    script = """
import os, sys, time
path = sys.argv[1]
assert not os.path.exists(path)
open(path, 'w').write('x\\n')
while not os.path.exists(path + '-go'):
    time.sleep(0.01)
os.unlink(path)
"""
    single = agent(script, str(tmp_path / "here"), max_running=1)
    turns = [FakeTurn(), FakeTurn()]
    for turn in turns:
        nursery.start_soon(single, cast("Turn", turn))
    await eventually_async(lambda: written(tmp_path / "here"))
    (tmp_path / "here-go").touch()
    await eventually_async(lambda: all(turn.notes for turn in turns))
    assert [turn.notes[0]["exitStatus"] for turn in turns] == [0, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"time_limit": 0}, "CommandAgent.time_limit is 0; write more than 0"),
        ({"grace": -1}, "CommandAgent.grace is -1; write seconds, 0 or more"),
        ({"output_limit": 0}, "CommandAgent.output_limit is 0; write a whole number from 1 on"),
        ({"max_running": 1.5}, "CommandAgent.max_running is 1.5; write a whole number from 1 on"),
        ({"argv": "cat"}, "argv is a program and its arguments"),
    ],
)
def test_a_field_that_cannot_be_meant_is_refused(wrong: dict[str, Any], message: str) -> None:
    """The message names the field and says what to write instead."""
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        CommandAgent(**{"argv": ("cat",), **wrong})
