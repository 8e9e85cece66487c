"""Whole lives of reminders in the real runtime, against a plain model of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from .faults import Fate, changes_schedule
from .machines import HostMachine
from .plain_model import REMINDER_TURN, Model, Occurrences, Work
from .worlds import T0, World, create, delete, listed, seconds, settled

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent

    from .logs import Delivery, Ledger

WAITS = st.sampled_from([0, 1, 3, 7, 10, 60, 299, 300, 301, 3600])
STEPS = st.sampled_from([-7200, -300, -61, -1, 1, 5, 61, 300, 7200])
DELAYS = st.sampled_from([1, 2, 5, 10, 60, 300, 1000])
PERIODS = st.sampled_from([300, 301, 600, 3600])
FATES = st.sampled_from([Fate.REFUSED, Fate.LOST, Fate.KEPT])


class ReminderMachine(HostMachine):
    """Reminders are made, deleted, due and delivered as the model says, whatever happens around them."""

    turn_seconds = REMINDER_TURN / 1000

    def __init__(self) -> None:
        self.world = World()
        super().__init__(self.world)
        self.model = Model(wall=T0)

    @rule(seconds=DELAYS)
    def create_once(self, seconds: int) -> None:
        self._created(self.thread.run(self._create, {"after_seconds": seconds}), self.model.create("after", seconds))

    @rule(seconds=PERIODS)
    def create_again_and_again(self, seconds: int) -> None:
        self._created(self.thread.run(self._create, {"every_seconds": seconds}), self.model.create("every", seconds))

    def _created(self, answer: Any, expected: str | None) -> None:
        assert answer.get("id") == expected
        if expected is None:
            assert answer["code"] == "persistence_uncertain"
        self.model.run()

    @rule(number=st.integers(1, 8))
    def delete(self, number: int) -> None:
        answer = self.thread.run(self._delete, f"schedule-{number}")
        assert answer.get("deleted") == self.model.delete(f"schedule-{number}")
        self.model.run()

    @rule()
    def list(self) -> None:
        expected = [
            (reminder.id, reminder.kind, "scheduled" if reminder.target > self.model.wall else "overdue")
            for reminder in self.model.reminders
        ]
        answer = self.thread.run(self._list)
        assert [(item["id"], item["kind"], item["state"]) for item in answer] == expected
        self.model.answer()
        self.model.run()

    @rule(by=WAITS)
    def wait(self, by: int) -> None:
        self.thread.run(self.world.wait, by)
        self.model.run(by * 1000)

    @rule(by=STEPS)
    def step(self, by: int) -> None:
        self.thread.run(self._step, by, True)
        self.model.wall += by * 1000
        self.model.run()

    @rule(by=st.sampled_from([-7200, -1, 5, 301]))
    def step_silently_and_list(self, by: int) -> None:
        """A step nobody tells of is noticed by the next call."""
        self.thread.run(self._step, by, False)
        self.model.wall += by * 1000
        self.list()

    @rule(duration=st.sampled_from([0, 1, 10, 400]))
    def be_busy(self, duration: int) -> None:
        self.thread.run(self._send, str(duration))
        self.model.pending.append(Work(duration * 1000))
        self.model.run()

    @precondition(lambda self: self.model.fate is None)
    @rule(fate=FATES)
    def have_the_next_change_fail(self, fate: Fate) -> None:
        self.world.store.fail(fate, of=changes_schedule)
        self.model.fate = fate

    @rule(down=st.sampled_from([0, 1, 400]), killed=st.booleans())
    def restart(self, down: int, killed: bool) -> None:
        self.model.restart(down * 1000)
        self.model.fate = None
        self.agent = self.thread.run(self._restart, down, killed)
        self.model.run()

    @rule()
    def dispose_and_restore(self) -> None:
        self.model.dispose_and_restore()
        self.agent = self.thread.run(self._dispose)
        self.model.run()

    @invariant()
    def the_log_and_the_turns_are_those_of_the_model(self) -> None:
        ledger: Ledger = self.thread.run(self.world.ledger)
        by_message: dict[str, list[Delivery]] = {}
        for delivery in ledger.deliveries:
            by_message.setdefault(delivery.message, []).append(delivery)
        delivered = [(group[0].at, _pairs(group)) for group in by_message.values()]
        assert delivered == self.model.deliveries
        runs = [(at, _pairs(by_message.get(ids[0], [])), redelivered) for at, ids, redelivered in self.world.runs]
        assert runs == self.model.runs
        assert ledger.active == {reminder.id: reminder.target for reminder in self.model.reminders}

    async def _create(self, selector: dict[str, Any]) -> Any:
        answer = await create(self.agent, **selector)
        await settled()
        return answer

    async def _delete(self, name: str) -> Any:
        answer = await delete(self.agent, name)
        await settled()
        return answer

    async def _list(self) -> Any:
        answer = await listed(self.agent)
        await settled()
        return answer

    async def _send(self, text: str) -> None:
        await self.agent.followup(text)
        await settled()

    async def _step(self, by: int, announce: bool) -> None:
        self.world.step(seconds(by), announce=announce)
        if announce:
            await settled()

    async def _restart(self, down: int, killed: bool) -> Agent:
        agent = await self.next_process(down, killed)
        await settled()
        return agent

    async def _dispose(self) -> Agent:
        await self.agent.dispose()
        agent = await self.thread.host.agent("root")
        await settled()
        return agent


def _pairs(deliveries: list[Delivery]) -> Occurrences:
    return tuple((delivery.id, delivery.occurrence) for delivery in deliveries)


def test_reminders_behave_as_the_model() -> None:
    """Any sequence of calls, waits, steps, turns, failures and restarts leaves the log that the model says."""
    run_state_machine_as_test(ReminderMachine, settings=settings(stateful_step_count=30, deadline=None))
