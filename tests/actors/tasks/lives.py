"""A compact life of a host with tasks of every target, lived again and again while something goes wrong in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from tests.actors.crashes import Life
from whenidle_actors.errors import StoreError, WhenidleError
from whenidle_protocol.errors import ToolError

from .accounts import Account, millis, take_account
from .worlds import ONCE, START, THIS, TaskWorld, call, every, ical, once, seconds

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.task_record import TargetKind

PERIOD = 60_000


class TaskLife(Life[TaskWorld, Account]):
    """Tasks of every target, edited and run by hand, a disposal and a restart."""

    rest = 130

    def __init__(self) -> None:
        super().__init__(TaskWorld())
        self.made: dict[str, str] = {}
        """Ids of tasks whose creation was acknowledged, by title."""
        self.deleted: set[str] = set()
        """Titles of those that were to be deleted."""
        self.runs = 0
        """Runs by hand that were acknowledged."""

    async def events(self) -> None:
        world = self.world
        async with world.host(passivate_after=30) as host:
            agent = await self.obtain(host)
            await self.tool(agent, "often", START + seconds(10), "FREQ=MINUTELY", "this_session")
            await self.tool(agent, "reserved", START + seconds(11), "FREQ=MINUTELY", "new_once")
            await self.tool(agent, "afresh", START + seconds(12), "FREQ=MINUTELY", "new")
            await self.make("beside", every(60, 10), THIS)
            await self.make("rested", every(60, 70), THIS)
            await self.make("single", once(10), THIS)
            await self.make("later", once(17), THIS)
            await self.make("gone", once(18), THIS)
            await self.make("single once", once(12), ONCE)
            await world.wait(9)
            await self.edit(agent, "gone", "delete")
            await world.wait(4.5)
            await self.run("afresh")
            await world.wait(5)
            await self.edit(agent, "beside", "update", title="edited")
            await self.edit(agent, "rested", "update", active=False)
            await self.edit(agent, "rested", "update", active=True)
            await world.wait(3.5)
            await self.run("often")
            await agent.dispose()
            await world.wait(47.5)
        async with world.host() as host:
            await world.wait(3)

    async def account(self) -> Account:
        """Check that nothing was lost, nothing came twice and nothing waits any more."""
        account = await take_account(self.world.store.inner)
        for title, task_id in self.made.items():
            if title not in self.deleted:
                assert task_id in account.tasks, f"{title} was made and is not there"
        by_hand = 0
        for task_id, task in account.tasks.items():
            by_hand += self._check_task(task_id, task, account)
        assert by_hand >= self.runs
        self._check_sessions(account)
        taken = {(name, message) for name, messages in account.runs.items() for message in messages}
        assert {(each.session, each.message) for each in account.deliveries} == taken
        return account

    def _check_task(self, task_id: str, task: dict[str, Any], account: Account) -> int:
        """Check that all that came due of a task was admitted, each once, and return how often it was run by hand."""
        first = millis(task["rule"].get("anchor") or task["rule"]["scheduledAt"])
        made = [each for each in account.deliveries if each.task == task_id]
        planned = sorted(
            (each for each in made if (each.occurrence - first) % PERIOD == 0), key=lambda each: each.occurrence
        )
        assert all(each.at >= each.occurrence for each in made), "admitted early"
        if task["rule"]["kind"] == "at":
            assert [each.occurrence for each in planned] == [first], f"{task['title']} was lost"
            assert task["status"] == "ended"
            return len(made) - 1
        at = first - PERIOD
        while at <= millis(task["createdAt"]) - PERIOD:  # the wall had been set forward
            at += PERIOD
        for each in planned:
            hole = each.occurrence - at - PERIOD * (each.missed + 1)
            assert hole == 0 or (hole > 0 and task["title"] == "rested"), f"{task['title']}: a hole, or an overlap"
            at = each.occurrence
        following = millis(task["scheduledAt"])
        assert following == at + PERIOD or (task["title"] == "rested" and (following - at) % PERIOD == 0)
        assert following > self.world.now_millis() or task["status"] == "paused", f"{task['title']} is overdue"
        return len(made) - len(planned)

    def _check_sessions(self, account: Account) -> None:
        """Check that each `new` delivery has a session of its own, and `new_once` has one in all."""
        for task_id, task in account.tasks.items():
            sessions = [each.session for each in account.deliveries if each.task == task_id]
            if task["target"]["kind"] == "new":
                assert len(set(sessions)) == len(sessions)
            else:
                assert len(set(sessions)) <= 1
        makers = {name for name in account.sessions if name != "root"}
        assert makers == {each.session for each in account.deliveries} - {"root"}, "a session without its message"

    async def tool(self, agent: Agent, title: str, begin: Any, rule: str, target: str) -> None:
        answer = await call(agent, "create", title=title, prompt="p", rrule=ical(begin, rule), target=target)
        if "code" not in answer and not self.is_dead:
            self.made[title] = answer["id"]

    async def make(self, title: str, rule: Rule, target: TargetKind) -> None:
        try:
            task = await self.world.make(rule, target, title=title)
        except (StoreError, ToolError):
            return
        if not self.is_dead:
            self.made[title] = task.id

    async def edit(self, agent: Agent, which: str, action: str, **fields: Any) -> None:
        if which in self.made:
            if action == "delete":
                self.deleted.add(which)  # or it may be
            await call(agent, "edit", id=self.made[which], action=action, **fields)

    async def run(self, title: str) -> None:
        """Run a task by hand, and let time pass while its agent is busy."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run, title, nursery.cancel_scope)
            while True:
                await self.world.wait(0)
                await self.world.wait(0.5)

    async def _run(self, title: str, over: trio.CancelScope) -> None:
        try:
            await self.world.tasks.run(self.made.get(title, "none"))
        except (WhenidleError, ToolError):
            pass
        else:
            if not self.is_dead:
                self.runs += 1
        over.cancel()
