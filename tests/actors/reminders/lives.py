"""A compact life of one agent with reminders, lived again and again while something goes wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.actors.crashes import Life
from whenidle_actors.errors import StoreError
from whenidle_protocol.session_state import replay

from .worlds import World, create, delete

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn

    from .logs import Ledger


class ReminderLife(Life[World, "Ledger"]):
    """Reminders, messages, a disposal and a restart."""

    rest = 700

    def __init__(self) -> None:
        super().__init__(World())
        self.created: set[str] = set()
        """Ids of reminders whose creation was acknowledged."""
        self.deleted: set[str] = set()
        """Ids of reminders whose deletion was acknowledged."""
        self.sent: set[str] = set()
        """Ids of messages whose acceptance was acknowledged."""
        self.world.during_turn = self._plan

    async def events(self) -> None:
        """Make, delete, be busy, be disposed, be restarted, and let things come due."""
        async with self.world.host(passivate_after=50) as host:
            agent = await self.obtain(host)
            await self.create(agent, after_seconds=5)
            await self.create(agent, after_seconds=5)
            await self.create(agent, every_seconds=300)
            await self.create(agent, after_seconds=307)
            await self.create(agent, after_seconds=306)
            await self.send(agent, "work")
            await self.world.wait(6)
            await self.delete(agent, "schedule-4")
            await self.world.wait(20)
            await self.create(agent, after_seconds=4)
            await self.send(agent, "more work")
            await self.world.wait(2)
            await agent.dispose()
            await self.world.wait(2)
            agent = await self.obtain(host)
            await self.world.wait(271)
        async with self.world.host() as host:
            agent = await self.obtain(host)
            await self.world.wait(3)
            await self.create(agent, every_seconds=301)
            await self.world.wait(20)

    async def account(self) -> Ledger:
        """Check that nothing was lost, nothing came twice and nothing waits any more."""
        world = self.world
        ledger = await world.ledger()
        assert self.created <= ledger.created.keys()
        assert self.deleted <= ledger.deleted
        one_shots = {name for name, record in ledger.created.items() if record["kind"] != "every"}
        delivered = {name for name, _ in ledger.delivered}
        assert delivered & one_shots == one_shots - ledger.deleted
        for name, target in ledger.active.items():
            assert target > world.now_millis(), f"{name} is overdue at an idle agent"
            assert name in delivered
        state = replay((await world.store.read("root")).records)
        assert (state.turn, state.redelivery, len(state.inbox)) == (None, None, 0)
        self._check_turns(ledger)
        return ledger

    def _check_turns(self, ledger: Ledger) -> None:
        """Each message was run at least once, and marked as redelivered whenever it had been taken before."""
        marks: dict[str, list[bool]] = {}
        for _, ids, redelivered in self.world.runs:
            for message in ids:
                marks.setdefault(message, []).append(redelivered)
        admitted = {delivery.message for delivery in ledger.deliveries}
        assert admitted | self.sent <= marks.keys()
        assert all(all(after[1:]) for after in marks.values())

    async def create(self, agent: Agent, **selector: Any) -> None:
        answer = await create(agent, **selector)
        if "code" not in answer and not self.is_dead:
            self.created.add(answer["id"])

    async def delete(self, agent: Agent, name: str) -> None:
        answer = await delete(agent, name)
        if answer.get("deleted") is True and not self.is_dead:
            self.deleted.add(name)

    async def send(self, agent: Agent, text: str) -> None:
        try:
            message = await agent.followup(text)
        except StoreError:
            return
        if not self.is_dead:
            self.sent.add(message)

    async def _plan(self, turn: Turn) -> None:
        """Use a tool from inside the first turn."""
        if turn.number == 1:
            await self.create(turn.agent, after_seconds=8)
