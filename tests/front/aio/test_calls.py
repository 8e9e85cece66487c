"""Calls from asyncio into trio: answers, and what a call sees."""

import asyncio
import contextvars

import sniffio

from whenidle import aio
from whenidle_protocol.events import Source

from .loops import Run, host

OPENER = contextvars.ContextVar[str]("opener")


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
