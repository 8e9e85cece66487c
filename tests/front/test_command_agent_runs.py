"""A turn function that runs a command again: after failures, and after a crash."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import trio
import trio.testing

from whenidle import MemoryStore, VirtualClock, open_host
from whenidle.command_report import CommandFailed
from whenidle.command_retries import Retries
from whenidle_actors.errors import StoreBusy
from whenidle_actors.stores.base import Role
from whenidle_protocol import EventRecord

if TYPE_CHECKING:
    from whenidle import Turn
from .command_turns import FakeTurn, agent


@pytest.fixture
def virtual() -> VirtualClock:
    """Return the clock of the test: it jumps whenever everybody waits for time, and not while a command runs."""
    return VirtualClock(autojump=True)


async def store_log(store: MemoryStore) -> tuple[EventRecord, ...]:
    """Return the log of the session `ada`."""
    async with store.opened(Role.MANAGER):
        return (await store.read("ada")).records


COUNTING = """
import os, sys
with open(sys.argv[1], 'a') as file:
    file.write(os.environ['WHENIDLE_RUN'] + '\\n')
sys.exit(int(sys.argv[2 + min(int(os.environ['WHENIDLE_RUN']), len(sys.argv) - 2) - 1]))
"""


async def test_a_failing_command_is_run_again_with_growing_waits(tmp_path: Path, virtual: VirtualClock) -> None:
    """Each run is noted, each wait is longer than the one before, and what succeeds at last is a success."""
    failing = agent(COUNTING, str(tmp_path / "runs"), "75", "75", "0", retries=Retries(runs=5, first_wait=10))
    turn = FakeTurn()
    began = trio.current_time()
    await failing(cast("Turn", turn))
    assert [(note["run"], note["exitStatus"], note["again"]) for note in turn.notes] == [
        (1, 75, True),
        (2, 75, True),
        (3, 0, False),
    ]
    assert 15 <= trio.current_time() - began <= 30
    assert (tmp_path / "runs").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize(
    ("retries", "runs"), [(Retries(), 1), (Retries(runs=3), 3), (Retries(runs=9, statuses=[75]), 2)]
)
async def test_the_policy_says_what_is_tried_again(
    tmp_path: Path, virtual: VirtualClock, retries: Retries, runs: int
) -> None:
    """The number of runs, and the statuses, each bound it; the last failure is the turn's."""
    turn = FakeTurn()
    with pytest.raises(CommandFailed, match="exit status 3") if runs != 1 else pytest.raises(CommandFailed):
        await agent(COUNTING, str(tmp_path / "runs"), "75", "3", retries=retries)(cast("Turn", turn))
    assert len(turn.notes) == runs


async def test_what_cannot_be_started_is_tried_again(tmp_path: Path, virtual: VirtualClock) -> None:
    """A folder on a disk that is away for a moment is a failure like another."""
    turn = FakeTurn(cwd=str(tmp_path / "gone"))
    with pytest.raises(CommandFailed, match="gone"):
        await agent("pass", retries=Retries(runs=2))(cast("Turn", turn))
    assert [note["again"] for note in turn.notes] == [True, False]


@pytest.mark.parametrize(
    ("noted", "runs"),
    [
        ({"exitStatus": 0, "timedOut": False, "run": 1, "again": False}, []),
        ({"exitStatus": 75, "timedOut": False, "run": 2, "again": True}, [3]),
        ({"exitStatus": 75}, [1]),
        ({"exitStatus": 75, "run": None, "again": True}, [1]),
        ({"exitStatus": "bad", "run": 1, "again": False}, [1]),
        ("progress", [1]),
        (None, [1]),
    ],
)
async def test_a_run_on_record_is_not_repeated_after_a_crash(
    tmp_path: Path, virtual: VirtualClock, noted: object, runs: list[int]
) -> None:
    """What a redelivered turn finds noted is its outcome, or the number of runs to go on from."""
    turn = FakeTurn(attempt=2, noted=noted)
    await agent(COUNTING, str(tmp_path / "runs"), "0", retries=Retries(runs=3))(cast("Turn", turn))
    assert [note["run"] for note in turn.notes] == runs


async def test_a_log_that_cannot_be_read_has_the_command_run_again() -> None:
    """The message is not lost for it."""
    turn = FakeTurn(attempt=2, noted=StoreBusy("later"))
    await agent("pass")(cast("Turn", turn))
    assert len(turn.notes) == 1


async def test_a_failure_on_record_fails_the_redelivered_turn() -> None:
    """The host died between the note and the end of the turn; the command is not run a second time."""
    turn = FakeTurn(attempt=2, noted={"exitStatus": 3, "timedOut": False, "run": 1, "again": False})
    with pytest.raises(CommandFailed, match="exit status 3"):
        await agent("pass")(cast("Turn", turn))
    assert turn.notes == []


async def test_runs_are_counted_across_hosts(tmp_path: Path, virtual: VirtualClock) -> None:
    """A host that stops in the middle of a wait leaves the rest to the next one: three runs in all."""
    store = MemoryStore()
    failing = agent(COUNTING, str(tmp_path / "runs"), "75", retries=Retries(runs=3, first_wait=50), clock=virtual)
    outcomes = []
    for seconds in (20, 1000):
        async with open_host(store=store, turn=failing, clock=virtual, shutdown_timeout=0) as host:
            if seconds == 20:
                await (await host.create_agent("ada")).followup("hello")
            await trio.sleep(seconds)
        log = await store_log(store)
        outcomes.append([json.loads(record.data)["outcome"] for record in log if record.type == "turn/end"])
    assert outcomes == [["interrupted"], ["interrupted", "error"]]
    assert (tmp_path / "runs").read_text() == "1\n2\n3\n"
