"""Scenarios about agents: their inbox, their phases, their end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

import trio

from whenidle_actors.supervision import Supervision
from whenidle_lab.faults import FaultKind, Faults
from whenidle_lab.scenario import Scenario

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn
    from whenidle_lab.world import World

_HOW = ("followup", "steer", "inject")


_LAST_TO_SEND = 4
"""The number of the last turn that sends its own agent a message: each brings another turn."""


class Inbox(Scenario):
    """Messages are sent, steered, injected, replaced, removed and cancelled while turns take them."""

    name = "inbox"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=150, commits=30, turns=6)

    async def turn(self, world: World, turn: Turn) -> None:
        """Work in steps, and take between them what has come."""
        for step in range(world.draw(4)):
            await world.wait(world.draw_span(1))
            await world.next_step(turn)
            await turn.note({"step": step})

    async def play(self, world: World) -> None:
        """Have two users speak to one agent."""
        async with trio.open_nursery() as nursery:
            for user in ("ann", "ben"):
                nursery.start_soon(self._use, world, user)

    async def _use(self, world: World, user: str) -> None:
        sent: list[str] = []
        for number in range(2 + world.draw(4)):
            agent = await world.agent("ada")
            message = await world.send(agent, f"{user} {number}", world.choose(_HOW))
            if message is not None:
                sent.append(message)
            await world.wait(world.draw_span(1))
            what = world.choose(("nothing", "remove", "replace", "cancel", "nothing"))
            if what == "remove" and sent:
                await world.remove(agent, world.choose(sent))
            elif what == "replace" and sent:
                await world.replace(agent, world.choose(sent), f"{user} {number} anew")
            elif what == "cancel":
                await world.cancel(agent, user, keep_inbox=bool(world.draw(2)))
        await world.when_idle(await world.agent("ada"))


class Claims(Scenario):
    """Several tasks claim an agent for maintenance, and others wait until it is idle."""

    name = "claims"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=150, commits=20, turns=5)

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - all turns are alike
        """Take a moment."""
        await world.wait(world.draw_span(1))

    async def play(self, world: World) -> None:
        """Have some claim, some wait, some send, and one cancel or dispose."""
        agent = await world.agent("ada")
        if world.once("create"):
            await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 1})
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(self._claim, world)
                nursery.start_soon(self._wait, world)
            nursery.start_soon(self._send, world)
            nursery.start_soon(self._disturb, world)

    async def _claim(self, world: World) -> None:
        for _ in range(2 + world.draw(2)):
            await world.wait(world.draw_span(1))
            await world.maintain(await world.agent("ada"), world.draw_span(1))

    async def _wait(self, world: World) -> None:
        for _ in range(2):
            await world.wait(world.draw_span(1))
            with trio.move_on_after(world.draw_span(60)):
                await world.when_idle(await world.agent("ada"))

    async def _send(self, world: World) -> None:
        for number in range(1 + world.draw(2)):
            await world.wait(world.draw_span(1))
            await world.send(await world.agent("ada"), f"hello {number}", world.choose(_HOW))

    async def _disturb(self, world: World) -> None:
        await world.wait(world.draw_span(1))
        agent, what = await world.agent("ada"), world.choose(("nothing", "cancel", "dispose", "nothing"))
        if what == "cancel":
            await world.cancel(agent, "enough", keep_inbox=bool(world.draw(2)))
        elif what == "dispose":
            await world.dispose(agent)


class Disposal(Scenario):
    """An agent is disposed and restored again and again, by several at once, while it is spoken to."""

    name = "disposal"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=150, commits=20, turns=4)

    def options(self) -> dict[str, object]:
        """Have quiet agents leave memory."""
        return {"passivate_after": 5.0}

    async def turn(self, world: World, turn: Turn) -> None:
        """Take a moment; dispose oneself, perhaps."""
        await world.wait(world.draw_span(1))
        if world.draw(6) == 1:
            await world.dispose(turn.agent)

    async def play(self, world: World) -> None:
        """Have two dispose, two send, and one wait."""
        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(self._send, world, number)
                nursery.start_soon(self._dispose, world)
            nursery.start_soon(self._wait, world)
        await world.agent("ada")

    async def _send(self, world: World, number: int) -> None:
        agent = await world.agent("ada")
        if world.once(f"create {number}"):
            await world.call(agent, "schedule_create", {"prompt": f"tea {number}", "after_seconds": 1 + number})
        for count in range(1 + world.draw(3)):
            await world.wait(world.draw_span(1))
            await world.send(agent if world.draw(2) else await world.agent("ada"), f"hello {number} {count}")

    async def _dispose(self, world: World) -> None:
        for _ in range(1 + world.draw(2)):
            await world.wait(world.draw_span(10))
            await world.dispose(await world.agent("ada"))

    async def _wait(self, world: World) -> None:
        for _ in range(2):
            await world.wait(world.draw_span(1))
            await world.when_idle(await world.agent("ada"))
            await world.maintain(await world.agent("ada"), world.draw_span(1))


class Forks(Scenario):
    """Sessions with reminders and messages are forked, at their end and before it; forks are forked again."""

    name = "forks"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=150, commits=25, turns=6)

    async def turn(self, world: World, turn: Turn) -> None:
        """Take a moment, and make a reminder, perhaps."""
        await world.wait(world.draw_span(1))
        if world.draw(4) == 1:
            await world.call(turn.agent, "schedule_create", {"prompt": "from a turn", "after_seconds": 2})

    async def play(self, world: World) -> None:
        """Make reminders and forks."""
        agent = await world.agent("ada")
        if world.once("create"):
            await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 1 + world.draw(10)})
            await world.call(agent, "schedule_create", {"prompt": "look", "every_seconds": 300})
        for number in range(1 + world.draw(3)):
            await world.send(agent, f"hello {number}", world.choose(_HOW))
            await world.wait(world.draw_span(10))
            fork = await world.fork(agent, world.choose((None, 0, 1, 2, 3)))
            if fork is not None:
                await world.call(fork, "schedule_create", {"prompt": f"of fork {number}", "after_seconds": 1})
                await world.send(fork, "and you")
                agent = fork if world.draw(2) else await world.agent("ada")
        await world.wait(world.draw_span(600))


class Pacing(Scenario):
    """A dozen agents come due together after a night's sleep, and only some may run at a time."""

    name = "pacing"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=250, commits=80, turns=20)

    def options(self) -> dict[str, object]:
        """Bound how many turns run at once."""
        return {"max_concurrent_turns": 2}

    async def turn(self, world: World, turn: Turn) -> None:  # noqa: ARG002 - all turns are alike
        """Take a second."""
        await world.wait(1)

    async def play(self, world: World) -> None:
        """Make reminders, sleep ten hours, wait for all."""
        names = [f"a{number}" for number in range(6 + world.draw(7))]
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self._prepare, world, name)
        if world.once("sleep"):
            world.step_clock(timedelta(hours=10), announce=not world.draw(2), how="suspend")
        await world.wait(world.draw_span(60))
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(self._disturb, world, name)

    async def _prepare(self, world: World, name: str) -> None:
        agent = await world.agent(name)
        if world.once(name):
            await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 3600})
            if world.draw(2):
                await world.call(agent, "schedule_create", {"prompt": "look", "every_seconds": 3600})

    async def _disturb(self, world: World, name: str) -> None:
        agent, what = await world.agent(name), world.draw(6)
        if what == 1:
            await world.cancel(agent, "not now", keep_inbox=bool(world.draw(2)))
        elif what == 2:  # noqa: PLR2004 - another of the six
            await world.wait(world.draw_span(1))
            await world.dispose(agent)
            agent = await world.agent(name)
        await world.when_idle(agent)


class ToolsInTurns(Scenario):
    """Turns call the tools of their own agent, speak to it, and end it."""

    name = "tools-in-turns"
    faults: ClassVar[Faults] = Faults.all().sized(rounds=120, commits=25, turns=5)

    async def turn(self, world: World, turn: Turn) -> None:
        """Do one thing or another to oneself."""
        agent = turn.agent
        for _ in range(1 + world.draw(2)):
            await world.wait(world.draw_span(1))
            what = world.choose(("step", "create", "delete", "list", "send", "cancel", "dispose", "create"))
            if what == "create":
                arguments = {"prompt": f"of turn {turn.number}", "after_seconds": 1 + world.draw(5)}
                await world.call(agent, "schedule_create", arguments)
            elif what == "delete":
                await world.call(agent, "schedule_delete", {"id": f"schedule-{1 + world.draw(3)}"})
            elif what == "list":
                await world.call(agent, "schedule_list", {})
            elif what == "send" and turn.number < _LAST_TO_SEND:
                await world.send(agent, f"of turn {turn.number}", world.choose(_HOW))
            elif what == "cancel":
                await world.cancel(agent, "myself", keep_inbox=bool(world.draw(2)))
            elif what == "dispose":
                await world.dispose(agent)
            else:
                await world.next_step(turn)

    async def play(self, world: World) -> None:
        """Give the agent reasons to run."""
        for number in range(2 + world.draw(2)):
            agent = await world.agent("ada")
            await world.send(agent, f"go on {number}")
            await world.wait(world.draw_span(1))
        await world.wait(10)
        await world.agent("ada")


class Supervised(Scenario):
    """The store has a bug that befalls an agent's own code; what failed too often is disposed and begins anew."""

    name = "supervision"
    faults: ClassVar[Faults] = Faults(
        Faults.all().kinds - {FaultKind.AGENT_DISPOSED, FaultKind.AGENT_FORKED, FaultKind.DISK_FULL},
        chance=0.35,
        most=2,
        rounds=150,
        commits=30,
    )

    def options(self) -> dict[str, object]:
        """Give up soon."""
        return {"supervision": Supervision(intensity=1, window=60.0, backoff_initial=0.5, backoff_max=5.0)}

    async def turn(self, world: World, turn: Turn) -> None:
        """Work in two steps."""
        await world.wait(world.draw_span(1))
        await world.next_step(turn)

    async def play(self, world: World) -> None:
        """Use two agents of which each may fail, and begin anew with what was given up."""
        async with trio.open_nursery() as nursery:
            for name in ("ada", "bob"):
                nursery.start_soon(self._use, world, name)

    async def _use(self, world: World, name: str) -> None:
        for number in range(3):
            agent = await world.agent(name)
            if agent.is_faulted:
                await world.dispose(agent)
                agent = await world.agent(name)
            if world.once(f"{name} {number}"):
                await world.call(agent, "schedule_create", {"prompt": f"tea {number}", "after_seconds": 1 + number})
            await world.send(agent, f"hello {number}", world.choose(_HOW))
            await world.wait(world.draw_span(10))
            await world.when_idle(agent)
        agent = await world.agent(name)
        if agent.is_faulted:
            await world.dispose(agent)
            agent = await world.agent(name)
        await world.wait(world.draw_span(10))
        await world.send(agent, "good night")
