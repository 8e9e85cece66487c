"""Calls from asyncio into trio: answers, exceptions, cancellation, context."""

import asyncio
import contextvars
import traceback
from typing import Any

import pytest
import sniffio
import trio

from whenidle import CommandAgent, InboxView, MemoryStore, ToolError, aio, errors
from whenidle_actors.stores.base import Batch
from whenidle_protocol.events import Source

from .loops import Gate, Run, host, until

OPENER = contextvars.ContextVar[str]("opener")


class SlowStore(MemoryStore):
    """Takes its time over a commit once it is told to, whoever is cancelled meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.hold: trio.Event | None = None
        self.began = 0

    async def commit(self, batch: Batch) -> None:
        """Commit when let go."""
        with trio.CancelScope(shield=self.hold is not None):
            if self.hold is not None:
                self.began += 1
                await self.hold.wait()
            await super().commit(batch)


async def refuse() -> None:
    """Fail, in trio, whoever is cancelled."""
    with trio.CancelScope(shield=True):
        await trio.lowlevel.checkpoint()
    raise ValueError("no")


def test_a_host_answers_on_an_asyncio_loop(run: Run) -> None:
    """Agents are made and found, messages and reminders taken, and turns run, as on a trio host."""
    seen = list[str]()

    async def turn(turn: aio.Turn) -> None:
        await asyncio.sleep(0)
        seen.extend(message.text for message in turn.messages)

    async def main() -> None:
        OPENER.set("main")
        async with host(turn) as there:
            ada = await there.create_agent("ada", cwd="/srv", preset="p")
            assert await there.agent("ada") == ada
            assert there.agents == (ada,)
            assert (ada.id, ada.header.cwd, ada.status, ada.is_faulted) == ("ada", "/srv", "idle", False)
            assert [tool.name for tool in ada.tools()] == ["schedule_create", "schedule_list", "schedule_delete"]
            reminder = await ada.call_tool("schedule_create", {"prompt": "Stretch.", "after_seconds": 60})
            assert await ada.call_tool("schedule_list", {}) == [reminder]
            await ada.inject("first")
            kept = await ada.inject("second")
            await ada.replace(kept, "2nd")
            await ada.remove((await ada.inbox()).next_step[0].id)
            assert [message.text for message in (await ada.inbox()).next_step] == ["2nd"]
            await ada.followup("third", source=Source.SCHEDULE)
            await ada.when_idle()
            await ada.steer("fourth")
            await ada.when_idle()
            assert seen == ["2nd", "third", "fourth"]
            assert ada.statistics().turns == 2
            fork = await there.fork("ada", new_id="eve")
            assert fork.header.forked_from == "ada"
            await there.dispose("eve")
            assert there.agents == (ada,)
            assert there.statistics().agents == there.load().agents == 1
            assert there.context.get(OPENER) == "main"
            assert there.clock.now().tzinfo is not None
            await there.close(grace=0)
            assert len(there.agents) == 0

    run(main())


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


def test_a_cancelled_caller_cancels_the_work(run: Run) -> None:
    """`CancelledError` in asyncio is `Cancelled` in trio, and is raised with its message when that has unwound."""
    steps = list[str]()

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
            steps.append("unwound")

    async def main() -> None:
        async with host():
            task = asyncio.create_task(aio.run_trio(work))
            await asyncio.sleep(0)
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await task
            assert steps == ["unwound"]

    run(main())


def test_a_commit_under_way_is_awaited_although_the_caller_is_cancelled(run: Run) -> None:
    """The call raises `CancelledError` only when the commit is durable, however often it is cancelled."""
    store = SlowStore()

    async def main() -> None:
        async with host(store=store) as there:
            hold = store.hold = trio.Event()
            task = asyncio.create_task(there.create_agent("ada"))
            await until(lambda: store.began == 1)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
            ended_early = task.done()
            store.hold = None
            hold.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not ended_early
            assert (await there.agent("ada")).id == "ada"

    run(main())


def test_a_message_whose_commit_is_under_way_is_queued_although_the_caller_is_cancelled(run: Run) -> None:
    """The agent's mailbox carries out what it has begun; only the answer is dropped."""
    store = SlowStore()

    async def main() -> None:
        async with host(store=store) as there:
            ada = await there.create_agent("ada")
            hold = store.hold = trio.Event()
            task = asyncio.create_task(ada.inject("kept"))
            await until(lambda: store.began == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            store.hold = None
            hold.set()
            assert [message.text for message in (await ada.inbox()).next_step] == ["kept"]

    run(main())


def test_a_caller_cancelled_before_its_turn_changes_nothing(run: Run) -> None:
    """A message that waits behind another's commit is withdrawn."""
    store = SlowStore()

    async def main() -> None:
        async with host(store=store) as there:
            ada = await there.create_agent("ada")
            hold = store.hold = trio.Event()
            first = asyncio.create_task(ada.inject("kept"))
            await until(lambda: store.began == 1)
            second = asyncio.create_task(ada.inject("withdrawn"))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            hold.set()
            await first
            assert [message.text for message in (await ada.inbox()).next_step] == ["kept"]

    run(main())


def test_what_the_work_raises_while_cancelled_is_the_truth(run: Run) -> None:
    """An exception of the clean-up wins over `CancelledError`, as in one task."""

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("clean-up")

    async def main() -> None:
        async with host():
            task = asyncio.create_task(aio.run_trio(work))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(ValueError, match="clean-up"):
                await task

    run(main())


def test_asyncio_timeouts_end_calls(run: Run) -> None:
    """`asyncio.timeout` around a call raises `TimeoutError`, and the task is not cancelled afterwards."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await ada.run_maintenance(asyncio.Event().wait)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            await ada.when_idle()

    run(main())


def test_a_task_group_ends_its_calls(run: Run) -> None:
    """One failure in a task group cancels the calls beside it, and they end."""

    async def fail() -> None:
        raise ValueError("one")

    async def main() -> None:
        async with host():
            with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - it is about the block
                async with asyncio.TaskGroup() as group:
                    group.create_task(aio.run_trio(trio.sleep_forever))
                    group.create_task(fail())
            assert [str(error) for error in caught.value.exceptions] == ["one"]

    run(main())


def test_context_variables_reach_trio(run: Run) -> None:
    """The work sees the caller's context variables; what it sets stays its own."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def look() -> str:
        seen = variable.get()
        variable.set("trio's")
        return seen

    async def main() -> None:
        async with host():
            variable.set("asyncio's")
            assert await aio.run_trio(look) == "asyncio's"
            assert variable.get() == "asyncio's"

    run(main())


def test_each_side_knows_which_library_it_is_in(run: Run) -> None:
    """sniffio, and what builds on it, sees trio in trio and asyncio in asyncio, in turns and maintenance too."""
    seen = list[str]()

    async def look() -> None:
        seen.append(sniffio.current_async_library())

    async def turn(_: aio.Turn) -> None:
        await look()

    async def main() -> None:
        async with host(turn) as there:
            ada = await there.create_agent()
            await look()
            await aio.run_trio(look)
            await ada.run_maintenance(look)
            await ada.followup("x")
            await ada.when_idle()
            await look()

    run(main())
    assert seen == ["asyncio", "trio", "asyncio", "asyncio", "asyncio"]


def test_calls_of_many_tasks_run_side_by_side(run: Run) -> None:
    """A hundred tasks call at once; each gets its own answer."""

    async def main() -> None:
        async with host() as there:
            agents = await asyncio.gather(*(there.create_agent(f"a{number}") for number in range(100)))
            assert [agent.id for agent in agents] == [f"a{number}" for number in range(100)]

    run(main())


def test_maintenance_runs_in_asyncio(run: Run) -> None:
    """Its result and its exception pass through, the agent is claimed meanwhile, and it cannot wait for itself."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")

            async def work() -> str:
                assert asyncio.current_task() is not None
                with pytest.raises(errors.WouldWaitForItself):
                    await ada.when_idle()
                with pytest.raises(errors.WouldWaitForItself):
                    await ada.run_maintenance(work)
                return "done"

            async def fail() -> None:
                raise ValueError("no")

            assert await ada.run_maintenance(work) == "done"
            with pytest.raises(ValueError, match="no") as caught:
                await ada.run_maintenance(fail)
            assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"

    run(main())


def test_a_claimed_agent_is_busy(run: Run) -> None:
    """A second claim is refused at once; `cancel` aborts the first and says why."""

    async def main() -> None:
        gate = Gate()
        async with host() as there:
            ada = await there.create_agent("ada")
            claim = asyncio.create_task(ada.run_maintenance(gate.pass_through))
            await gate.entered.wait()
            with pytest.raises(errors.AgentBusy):
                await ada.run_maintenance(gate.pass_through)
            await ada.cancel("because")
            with pytest.raises(errors.MaintenanceAborted, match="because"):
                await claim

    run(main())


def test_a_cancelled_claim_cancels_its_task(run: Run) -> None:
    """The maintenance task is cancelled with its caller, and the agent is free when that has ended."""
    ended = list[str]()

    async def main() -> None:
        gate = Gate()

        async def work() -> None:
            try:
                await gate.pass_through()
            finally:
                await asyncio.sleep(0)
                ended.append("work")

        async with host() as there:
            ada = await there.create_agent("ada")
            claim = asyncio.create_task(ada.run_maintenance(work))
            await gate.entered.wait()
            claim.cancel()
            with pytest.raises(asyncio.CancelledError):
                await claim
            assert ended == ["work"]
            assert await ada.run_maintenance(ada.inbox) == InboxView((), ())

    run(main())


def test_maintenance_that_ends_as_cancelled_cancels_its_caller(run: Run) -> None:
    """A `CancelledError` that nobody asked for passes through like any exception."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            with pytest.raises(asyncio.CancelledError):
                await ada.run_maintenance(cancelled)
            await ada.when_idle()

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
