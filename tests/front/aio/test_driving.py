"""How the trio run gets its turns on the loop: by the loop's own selector where that can be, else by trio's thread."""

import asyncio
import select
import subprocess
import sys

import pytest
import trio

from whenidle import aio
from whenidle.aio.driving import Driver

from .loops import Run, host


@pytest.fixture(params=["the loop's selector", "trio's thread"])
def wait(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have the run wait in one way or the other."""
    if request.param == "trio's thread":
        monkeypatch.setattr(Driver, "_adopt", lambda *_: None)
    return str(request.param)


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="the loop can watch epoll alone")
def test_where_there_is_epoll_the_loop_waits_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of trio whose parts have other names would be noticed here: it would only be slower."""
    started = list[object]()
    monkeypatch.setattr("trio._core._run.start_thread_soon", lambda *arguments: started.append(arguments))

    async def main() -> None:
        async with host() as there:
            await there.create_agent("ada")
            await asyncio.sleep(0.01)

    run(main())
    assert started == []


@pytest.mark.usefixtures("wait")
def test_whatever_trio_waits_for_wakes_it(run: Run) -> None:
    """Deadlines, sockets, threads, other callbacks of the loop, and tasks that are all blocked."""

    async def deadline() -> str:
        await trio.sleep(0.01)
        return "deadline"

    async def socket() -> str:
        one, other = trio.socket.socketpair()
        with one, other:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one.recv, 1)
                await trio.sleep(0.01)
                await other.send(b"x")
        return "socket"

    async def thread() -> str:
        return await trio.to_thread.run_sync(lambda: "thread")

    async def blocked() -> str:
        await trio.testing.wait_all_tasks_blocked(0.01)
        return "blocked"

    async def callback() -> str:
        event = trio.Event()
        asyncio.get_running_loop().call_later(0.01, event.set)
        await event.wait()
        return "callback"

    async def moved_deadline() -> str:
        with trio.CancelScope() as scope:

            def end() -> None:
                scope.deadline = trio.current_time()

            asyncio.get_running_loop().call_later(0.01, end)
            await trio.sleep_forever()
        return "moved deadline"

    async def main() -> None:
        async with host():
            for work in (deadline, socket, thread, blocked, callback, moved_deadline):
                assert await aio.run_trio(work) == work.__name__.replace("_", " ")

    run(main())


@pytest.mark.usefixtures("wait")
def test_calls_turns_and_shutdown_work_either_way(run: Run) -> None:
    """Nothing of what a host does depends on how it waits."""

    async def turn(turn: aio.Turn) -> None:
        await asyncio.sleep(0)
        await turn.note(turn.number)

    async def main() -> None:
        for _ in range(3):
            async with host(turn) as there:
                ada = await there.create_agent("ada")
                await asyncio.gather(*(ada.followup("x") for _ in range(10)))
                await ada.when_idle()
                assert ada.statistics().turns == 10
            assert not trio.lowlevel.in_trio_run()

    run(main())


CRASHING = """
import asyncio, os, trio
from whenidle import MemoryStore, aio

async def turn(turn): ...

async def main():
    async with aio.open_host(store=MemoryStore(), turn=turn) as host:
        waiting = asyncio.create_task(aio.run_trio(trio.sleep_forever))
        await host.create_agent("ada")
        type(trio.lowlevel.current_root_task()._runner.{part}).{method} = lambda *_: 1 / 0
        for call in (aio.run_trio(trio.lowlevel.checkpoint), waiting):
            try:
                await call
            except trio.TrioInternalError as error:
                print(type(error.__cause__).__name__, flush=True)
        os._exit(0)  # what is left of trio is not fit to be cleared up

asyncio.run(main())
"""


@pytest.mark.parametrize(("part", "method"), [("deadlines", "expire"), ("io_manager", "get_events")])
def test_a_crash_of_trio_itself_fails_what_waits(part: str, method: str) -> None:
    """An error in the innards of trio reaches every caller; nobody waits for ever."""
    command = [sys.executable, "-c", CRASHING.format(part=part, method=method)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "ZeroDivisionError\n" * 2
