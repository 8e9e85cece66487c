"""A turn function that runs a command."""

import json
import os
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest
import trio
import trio.testing

from whenidle.command_agent import CommandAgent, CommandFailed, CommandNotFound, CommandTimedOut
from whenidle_actors.errors import InvalidArgument
from whenidle_protocol import Lane, Message, Source

from .command_line import python
from .processes import alive, eventually_async, written

if TYPE_CHECKING:
    from whenidle import Turn


@attrs.define
class FakeTurn:
    """What a command agent uses of a turn."""

    messages: tuple[Message, ...] = (Message("m4", Lane.NEXT_TURN, True, "hello", Source.USER),)
    cwd: str = ""
    attempt: int = 1
    notes: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])
    number: int = 3

    @property
    def agent(self) -> object:
        """The agent's id and header."""
        return SimpleNamespace(id="ada", header=SimpleNamespace(cwd=self.cwd))

    @property
    def redelivered(self) -> bool:
        """As a turn says it."""
        return self.attempt > 1

    async def note(self, data: dict[str, Any]) -> None:
        """Keep the note."""
        await trio.lowlevel.checkpoint()
        self.notes.append(data)


def relative_script(folder: Path) -> str:
    """Make a script that tells its working directory, and return a path to it from ours."""
    script = folder / "tool"
    script.write_text("#!/bin/sh\npwd\n")
    script.chmod(0o755)
    return os.path.relpath(script)


async def run(agent: CommandAgent, turn: FakeTurn) -> dict[str, Any]:
    """Run a turn and return its only note."""
    await agent(cast("Turn", turn))
    (note,) = turn.notes
    return note


def agent(script: str, *argv: str, **options: Any) -> CommandAgent:
    """Return an agent that runs a Python script."""
    return CommandAgent.from_command_line(shlex.join(python(script, *argv)), **options)


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
    made_elsewhere = CommandAgent.from_command_line(relative_script(tmp_path))
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


@pytest.mark.parametrize(
    ("command", "message"), [("", "is empty"), ("''", "is empty"), ("a 'b", "No closing quotation")]
)
def test_a_command_line_that_cannot_be_split_is_an_argument_error(command: str, message: str) -> None:
    """The mistake is named before anything starts."""
    with pytest.raises(InvalidArgument, match=message):
        CommandAgent.from_command_line(command)


def test_a_program_is_looked_for_at_once(tmp_path: Path) -> None:
    """Missing and not executable are told apart."""
    with pytest.raises(CommandNotFound, match="'nowhere-to-be-found' was not found"):
        CommandAgent.from_command_line("nowhere-to-be-found --x")
    (tmp_path / "data").write_text("")
    with pytest.raises(CommandNotFound, match="is not executable"):
        CommandAgent.from_command_line(str(tmp_path / "data"))
    assert CommandAgent.from_command_line("sh -c 'a b'").argv[1:] == ("-c", "a b")
