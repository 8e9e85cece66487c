"""The task service against a plain model of it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from tests.actors.reminders.faults import Fate
from tests.actors.reminders.machines import HostMachine
from whenidle_clock import from_millis
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AtRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import UpdateTask
from whenidle_protocol.task_settings import Caller

from .accounts import Account, millis, take_account
from .plain_model import Model, Occurrences, Plan, Target
from .worlds import T0, TaskWorld, call, seconds

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.stores.base import Batch

TARGETS: st.SearchStrategy[Target] = st.sampled_from(["this_session", "this_session", "new_once", "new"])
WAITS = st.sampled_from([0, 1, 3, 10, 59, 60, 61, 300, 3600])
STEPS = st.sampled_from([-7200, -300, -61, -1, 1, 5, 61, 300, 7200])
DELAYS = st.sampled_from([1, 2, 5, 10, 60, 300])
PERIODS = st.sampled_from([60, 61, 120, 300])
NUMBERS = st.integers(0, 5)


class TaskMachine(HostMachine):
    """Tasks are made, changed, due and delivered as the model says, whatever happens around them."""

    def __init__(self) -> None:
        self.world = TaskWorld()
        super().__init__(self.world)
        self.model = Model(wall=T0)
        self.ids: dict[int, str] = {}

    @rule(delay=DELAYS, where=TARGETS)
    def create_once(self, delay: int, where: Target) -> None:
        first = self.model.wall + delay * 1000
        self._create(self.model.create(where, None, first), AtRule(from_millis(first)))

    @rule(period=PERIODS, delay=DELAYS, where=TARGETS)
    def create_again_and_again(self, period: int, delay: int, where: Target) -> None:
        first = self.model.wall + delay * 1000
        self._create(self.model.create(where, period * 1000, first), EveryRule(period, from_millis(first)))

    def _create(self, plan: Plan, rule: EveryRule | AtRule) -> None:
        async def make() -> str:
            task = await self.world.make(rule, TargetKind(plan.target), title=f"{plan.number}")
            # Of two made in one millisecond the id decides which is first; this one is to be the later.
            await self.world.wait(0.001)
            return task.id

        self.ids[plan.number] = self.thread.run(make)
        self.model.run(1)

    @rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        if number in self.model.plans:
            del self.model.plans[number]
            assert self._edit(number, "delete")["deleted"] is True
            self.model.run()

    @rule(number=NUMBERS)
    def pause(self, number: int) -> None:
        plan = self.model.plans.get(number)
        if plan is not None:
            plan.status = "paused" if plan.status == "active" else plan.status
            assert self._edit(number, "update", active=False)["status"] == plan.status
            self.model.run()

    @rule(number=NUMBERS)
    def resume(self, number: int) -> None:
        plan = self.model.plans.get(number)
        if plan is not None:
            answer = self._edit(number, "update", active=True)
            if self.model.resume(plan):
                assert answer["status"] == "active"
            else:
                assert answer["code"] == "not_future"
            self.model.run()

    @rule(number=NUMBERS, period=PERIODS)
    def change_the_rule(self, number: int, period: int) -> None:
        plan = self.model.plans.get(number)
        if plan is not None:
            self.thread.run(self._change_rule, number, period)
            self.model.set_period(plan, period * 1000)
            self.model.run()

    @rule(number=NUMBERS, where=TARGETS)
    def change_the_target(self, number: int, where: Target) -> None:
        plan = self.model.plans.get(number)
        if plan is not None:
            plan.target = where
            assert self._edit(number, "update", target=where)["target"] == where
            self.model.run()

    @rule(number=NUMBERS)
    def run_by_hand(self, number: int) -> None:
        plan = self.model.plans.get(number)
        if plan is not None and plan.target != "this_session":
            self.thread.run(self._run, number)
            self.model.run_by_hand(plan)
            self.model.run(1)

    @rule(by=WAITS)
    def wait(self, by: int) -> None:
        self.thread.run(self.world.wait, by)
        self.model.run(by * 1000)

    @rule(by=STEPS)
    def step(self, by: int) -> None:
        self.thread.run(self._step, by)
        self.model.wall += by * 1000
        self.model.run()

    @rule(duration=st.sampled_from([0, 1, 10, 400]))
    def be_busy(self, duration: int) -> None:
        self.thread.run(self._send, f"{duration}")
        self.model.add_work(duration * 1000)
        self.model.run()

    @precondition(lambda self: not self.model.fails)
    @rule(fate=st.sampled_from([Fate.REFUSED, Fate.LOST, Fate.KEPT]))
    def have_the_next_delivery_to_root_fail(self, fate: Fate) -> None:
        self.world.store.fail(fate, of=_is_delivery_to_root)
        self.model.fails = fate is not Fate.KEPT

    @rule(down=st.sampled_from([0, 1, 400]), killed=st.booleans())
    def restart(self, down: int, killed: bool) -> None:
        self.agent = self.thread.run(self._restart, down, killed)
        self.model.restart(down * 1000)
        self.model.run()

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        account: Account = self.thread.run(self._account)
        assert sorted(self._delivered(account)) == sorted(self.model.deliveries)
        assert [each for each in self._delivered(account) if each[0] == "root"] == [
            each for each in self.model.deliveries if each[0] == "root"
        ]
        for number, plan in self.model.plans.items():
            task = account.tasks[self.ids[number]]
            assert (
                task["status"],
                millis(task["scheduledAt"]),
                task.get("deliveries", 0),
                task.get("missed", 0),
                task["target"]["kind"],
            ) == (plan.status, plan.next, plan.deliveries, plan.missed, plan.target), number
        assert account.tasks.keys() == {self.ids[number] for number in self.model.plans}

    def _delivered(self, account: Account) -> list[tuple[str, int, Occurrences]]:
        found: list[tuple[str, int, Occurrences]] = []
        ordered = sorted(account.deliveries, key=lambda each: (each.session, int(each.message[1:])))
        for (session, _), group in groupby(ordered, key=lambda each: (each.session, each.message)):
            told = list(group)
            where = "root" if session == "root" else told[0].title
            found.append((where, told[0].at, tuple((int(each.title), each.occurrence, each.missed) for each in told)))
        return found

    def _edit(self, number: int, action: str, **fields: Any) -> dict[str, Any]:
        async def edit() -> dict[str, Any]:
            answer = await call(self.agent, "edit", id=self.ids[number], action=action, **fields)
            await self.world.wait(0)
            return answer

        answer: dict[str, Any] = self.thread.run(edit)
        return answer

    async def _change_rule(self, number: int, period: int) -> None:
        await self.world.desk.edit(UpdateTask(self.ids[number], rule=EveryRule(period)), Caller("root"))
        await self.world.wait(0)

    async def _run(self, number: int) -> None:
        await self.world.tasks.run(self.ids[number])
        await self.world.wait(0.001)  # two runs in one millisecond would be one session

    async def _step(self, by: int) -> None:
        self.world.step(seconds(by))
        await self.world.wait(0)

    async def _send(self, text: str) -> None:
        await self.agent.followup(text)
        await self.world.wait(0)

    async def _restart(self, down: int, killed: bool) -> Agent:
        agent = await self.next_process(down, killed)
        await self.world.wait(0)
        return agent

    async def _account(self) -> Account:
        return await take_account(self.world.store.inner, repeats=True)


def _is_delivery_to_root(batch: Batch) -> bool:
    return bool(batch.receipts) and batch.appends[0].session_id == "root"


def test_tasks_behave_as_the_model() -> None:
    """Any sequence of calls, waits, steps, turns, failures and restarts leaves the store that the model says."""
    run_state_machine_as_test(TaskMachine, settings=settings(stateful_step_count=30, deadline=None))
