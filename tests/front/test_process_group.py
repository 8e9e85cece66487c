"""A program in a process group of its own: real processes, ended for certain."""

import os
import signal
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from whenidle.process_group import Finished, Limits, Program, run_group

from .processes import alive, eventually_async, written

LIMIT = 300.0
GRACE = 60.0


async def run(
    script: str,
    *args: str,
    stdin: bytes = b"",
    seconds: float = 30,
    grace: float = 20,
    output_bytes: int = 65_536,
    hurry: trio.Event | None = None,
) -> Finished:
    """Run a Python script in a group."""
    argv = (sys.executable, "-I", "-S", "-c", script, *args)
    return await run_group(
        Program(argv, {**os.environ, "COLOUR": "blue"}),
        stdin=stdin,
        limits=Limits(seconds, grace, output_bytes),
        hurry=trio.Event() if hurry is None else hurry,
    )


async def dead(pid: int) -> bool:
    """Wait until the process is gone."""
    return await eventually_async(lambda: not alive(pid))


async def pids_in(path: Path) -> list[int]:
    """Return the process ids that a script writes to `path`, once it has."""
    return [int(pid) for pid in (await eventually_async(lambda: written(path))).split()]


class Running:
    """A run in the background of a nursery, under a clock that only jumps when told to."""

    def __init__(self, nursery: trio.Nursery, folder: Path, clock: trio.testing.MockClock) -> None:
        self._nursery = nursery
        self._file = folder / "pids"
        self._clock = clock
        self.finished: Finished | None = None
        self._ended = trio.Event()

    async def start(self, script: str, *, hurry: trio.Event | None = None) -> list[int]:
        async def call() -> None:
            self.finished = await run(script, str(self._file), seconds=LIMIT, grace=GRACE, hurry=hurry)
            self._ended.set()

        self._nursery.start_soon(call)
        return await pids_in(self._file)

    async def pass_time(self, seconds: float) -> None:
        await trio.testing.wait_all_tasks_blocked()
        self._clock.jump(seconds)
        await trio.testing.wait_all_tasks_blocked()

    async def end(self) -> Finished:
        await self._ended.wait()
        assert self.finished is not None
        return self.finished


ECHO = "import sys, os; sys.stdout.write(sys.stdin.read() + os.environ['COLOUR']); sys.exit(3)"
# A leader that ignores SIGTERM and has a child that does so too; it writes the two ids when both are deaf.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    open(sys.argv[1], 'w').write(f'{os.getpid()} {child}\\n')
time.sleep(3600)
"""
POLITE = """
import os, signal, sys, time
def bye(*_):
    sys.stdout.write('bye')
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
open(sys.argv[1], 'w').write(f'{os.getpid()}\\n')
time.sleep(3600)
"""


async def test_input_output_and_status_pass_through() -> None:
    """The program reads the bytes given, sees the environment, and its output and status come back."""
    finished = await run(ECHO, stdin=b"hello ")
    assert finished.status == 3
    assert not finished.timed_out
    assert (finished.stdout.text, finished.stdout.total_bytes, finished.stdout.truncated) == (
        "hello blue",
        10,
        False,
    )
    assert finished.stderr.text == ""


async def test_a_program_need_not_read_its_input() -> None:
    """A megabyte that nobody reads is no error and no hang."""
    finished = await run("import sys; sys.stdin.close()", stdin=b"x" * 1_000_000)
    assert finished.status == 0


async def test_only_the_end_of_long_output_is_kept() -> None:
    """Each stream is cut to its limit from the front and says how long it was."""
    finished = await run("import sys; sys.stdout.write('a' * 1_000_000 + 'z'); sys.stderr.write('e')", output_bytes=100)
    assert finished.stdout.text == "a" * 99 + "z"
    assert finished.stdout.total_bytes == 1_000_001
    assert finished.stdout.truncated
    assert not finished.stderr.truncated


async def test_a_cut_does_not_break_a_character() -> None:
    """A character that the cut goes through is dropped whole."""
    finished = await run("import sys; sys.stdout.buffer.write('ééé'.encode())", output_bytes=3)
    assert finished.stdout.text == "é"
    assert finished.stdout.truncated


async def test_output_that_is_not_utf8_is_decoded_with_replacement() -> None:
    """Bytes that are not UTF-8 become U+FFFD."""
    finished = await run("import sys; sys.stdout.buffer.write(b'a\\xffb')")
    assert finished.stdout.text == "a\ufffdb"


async def test_a_program_that_ends_by_a_signal_says_which() -> None:
    """The status of a program ended by signal n is -n."""
    finished = await run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert finished.status == -signal.SIGKILL


async def test_at_the_time_limit_the_group_is_asked_to_stop_and_its_last_words_are_kept(
    nursery: trio.Nursery, tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    """SIGTERM comes first, and what the program writes on it still counts."""
    running = Running(nursery, tmp_path, mock_clock)
    await running.start(POLITE)
    await running.pass_time(LIMIT - 1)
    assert running.finished is None
    await running.pass_time(1)
    finished = await running.end()
    assert finished.timed_out
    assert finished.stdout.text == "bye"
    assert finished.status == 0


async def test_a_deaf_group_is_killed_after_its_grace(
    nursery: trio.Nursery, tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    """Leader and child ignore SIGTERM; they live through the grace period and are dead after it."""
    running = Running(nursery, tmp_path, mock_clock)
    pids = await running.start(DEAF)
    await running.pass_time(LIMIT)
    await running.pass_time(GRACE - 1)
    assert [alive(pid) for pid in pids] == [True, True]
    await running.pass_time(1)
    finished = await running.end()
    assert finished.timed_out
    assert finished.status == -signal.SIGKILL
    for pid in pids:
        await dead(pid)


async def test_hurry_ends_the_grace(nursery: trio.Nursery, tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    """With `hurry` set nobody waits for the grace period."""
    running = Running(nursery, tmp_path, mock_clock)
    hurry = trio.Event()
    pids = await running.start(DEAF, hurry=hurry)
    await running.pass_time(LIMIT)
    hurry.set()
    assert (await running.end()).status == -signal.SIGKILL
    for pid in pids:
        await dead(pid)


async def test_cancelling_kills_the_group_before_it_returns(tmp_path: Path, mock_clock: trio.testing.MockClock) -> None:
    """A cancelled call waits for the grace period, not longer, and leaves no process."""
    async with trio.open_nursery() as nursery:
        running = Running(nursery, tmp_path, mock_clock)
        pids = await running.start(DEAF)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await running.pass_time(GRACE)
    assert running.finished is None
    for pid in pids:
        await dead(pid)


async def test_a_cancel_during_the_grace_does_not_begin_it_anew(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    """The group had a part of its time already; the one who is cancelled waits for the rest of it only."""
    async with trio.open_nursery() as nursery:
        running = Running(nursery, tmp_path, mock_clock)
        pids = await running.start(DEAF)
        await running.pass_time(LIMIT)
        await running.pass_time(GRACE - 1)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await running.pass_time(1)
    for pid in pids:
        await dead(pid)


async def test_what_the_program_leaves_behind_in_its_group_is_killed(tmp_path: Path) -> None:
    """A background child does not outlive the turn and does not hold it up."""
    script = """
import os, sys, time
if child := os.fork():
    open(sys.argv[1], 'w').write(f'{child}\\n')
    sys.exit(0)
time.sleep(3600)
"""
    finished = await run(script, str(tmp_path / "pids"))
    assert finished.status == 0
    for pid in await pids_in(tmp_path / "pids"):
        await dead(pid)


async def test_a_daemon_that_keeps_the_pipe_open_does_not_hold_the_turn(tmp_path: Path) -> None:
    """A process that left the group may live on with the pipe in hand; the output ends without it."""
    script = """
import os, sys, time
print('said', flush=True)
if os.fork():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    sys.exit(0)
os.setsid()
open(sys.argv[1], 'w').write(f'{os.getpid()}\\n')
time.sleep(3600)
"""
    finished = await run(script, str(tmp_path / "pids"))
    assert finished.stdout.text == "said\n"
    for pid in await pids_in(tmp_path / "pids"):
        os.kill(pid, signal.SIGKILL)


async def test_a_program_that_does_not_exist_is_an_os_error() -> None:
    """Nothing is started and nothing has to be ended."""
    with pytest.raises(FileNotFoundError):
        await run_group(Program(["/nowhere/at/all"], {}), stdin=b"", limits=Limits(1, 1, 1), hurry=trio.Event())
