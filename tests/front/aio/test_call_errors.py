"""What calls from asyncio into trio raise."""

import asyncio
import traceback
from typing import Any

import pytest
import trio

from whenidle import CommandAgent, ToolError, aio, errors

from .loops import Run, host


async def refuse() -> None:
    """Fail, in trio, whoever is cancelled."""
    with trio.CancelScope(shield=True):
        await trio.lowlevel.checkpoint()
    raise ValueError("no")


def test_exceptions_cross_with_their_traceback(run: Run) -> None:
    """What trio raised is raised in the asyncio task: the same object, with the frames of both sides."""

    async def caller() -> None:
        await aio.run_trio(refuse)

    async def main() -> None:
        async with host():
            with pytest.raises(ValueError, match="no") as caught:
                await caller()
            names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
            assert names.index("caller") < names.index("refuse") == len(names) - 1

    run(main())


def test_errors_have_the_types_of_the_trio_host(run: Run) -> None:
    """A wrong argument, an unknown session and a refused claim raise what they raise under trio."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            with pytest.raises(errors.UnknownSession):
                await there.agent("nobody")
            with pytest.raises(errors.InvalidArgument):
                await ada.followup(7)  # type: ignore[arg-type]
            with pytest.raises(errors.UnknownTool):
                await ada.call_tool("nothing", {})
            await ada.dispose()
            with pytest.raises(errors.AgentDisposed):
                await ada.followup("x")

    run(main())


def test_exception_groups_cross_whole(run: Run) -> None:
    """A group that trio raised arrives as that group."""

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            nursery.start_soon(refuse)

    async def main() -> None:
        async with host():
            with pytest.raises(ExceptionGroup) as caught:
                await aio.run_trio(both)
            assert [type(error) for error in caught.value.exceptions] == [ValueError, ValueError]

    run(main())


def test_calls_after_the_end_say_so(run: Run) -> None:
    """When the last host is closed, calls raise `HostClosed`, whether they wait or come later."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            waiting = asyncio.create_task(aio.run_trio(trio.sleep_forever))
            idle = asyncio.create_task(ada.run_maintenance(asyncio.Event().wait))
            await asyncio.sleep(0)
        with pytest.raises(aio.HostClosed):
            await waiting
        with pytest.raises(errors.AgentDisposed):
            await idle
        for call in (ada.inbox, lambda: there.agent("ada")):
            with pytest.raises(aio.HostClosed, match="async with"):
                await call()
        with pytest.raises(errors.CompositionError, match="no host is open"):
            await aio.run_trio(trio.sleep_forever)

    run(main())


def test_a_call_from_another_loop_is_refused(run: Run) -> None:
    """A host called from a loop in another thread says where to go instead."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")

            def elsewhere() -> None:
                asyncio.run(ada.followup("x"))

            with pytest.raises(aio.WrongLoop, match="open_portal"):
                await asyncio.to_thread(elsewhere)

    run(main())


@pytest.mark.parametrize(
    ("turn", "words"),
    [(None, "turn is an async function"), (CommandAgent(argv=("true",)), "write turn=TrioTurn")],
)
def test_what_is_no_asyncio_turn_function_is_refused(run: Run, turn: Any, words: str) -> None:
    """So is a `CommandAgent` that is not marked as one for trio: the message says how."""

    async def main() -> None:
        with pytest.raises(errors.InvalidArgument, match=words):
            async with host(turn):
                raise AssertionError

    run(main())


def test_tool_errors_cross(run: Run) -> None:
    """What a task desk refuses is a `ToolError` with its code."""
    tasks = aio.Tasks()

    async def main() -> None:
        async with host(suites=[tasks]):
            with pytest.raises(ToolError) as caught:
                await tasks.desk.view("task-1")
            assert caught.value.code == "schedule_not_found"

    run(main())
