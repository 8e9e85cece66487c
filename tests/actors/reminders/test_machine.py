"""Whole lives of reminders in the real runtime, against a plain model of them."""

from __future__ import annotations

import queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import trio
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from .faults import Fate, FaultyStore, changes_schedule
from .plain_model import REMINDER_TURN, Model, Occurrences, Work
from .worlds import T0, World, create, delete, listed, seconds, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn

    from .logs import Delivery, Ledger

WAITS = st.sampled_from([0, 1, 3, 7, 10, 60, 299, 300, 301, 3600])
STEPS = st.sampled_from([-7200, -300, -61, -1, 1, 5, 61, 300, 7200])
DELAYS = st.sampled_from([1, 2, 5, 10, 60, 300, 1000])
PERIODS = st.sampled_from([300, 301, 600, 3600])
FATES = st.sampled_from([Fate.REFUSED, Fate.LOST, Fate.KEPT])


class HostThread:
    """A trio run on a world's clock in a thread of its own, with a host in it that can be exchanged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host: Host
        self._closing = trio.Event()
        self._tokens: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()
        self._thread = Thread(target=trio.run, args=(self._serve,), kwargs={"clock": world})
        self._thread.start()
        self._token = self._tokens.get()

    async def _serve(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._stop = trio.Event()
            self._tokens.put(trio.lowlevel.current_trio_token())
            await self._stop.wait()
            await self.close()

    def run(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def stop(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join()

    async def open(self) -> Agent:
        """Open a host and return its agent `root`."""
        agent: Agent = await self._nursery.start(self._host)
        return agent

    async def close(self) -> None:
        self._closing.set()
        await self._closed.wait()

    async def _host(self, task_status: trio.TaskStatus[Agent]) -> None:
        self._closing, self._closed = trio.Event(), trio.Event()
        try:
            async with self.world.host() as self.host:
                known = await self.world.store.sessions()
                make = self.host.agent if known else self.host.create_agent
                task_status.started(await make("root"))
                await self._closing.wait()
        finally:
            self._closed.set()


class ReminderMachine(RuleBasedStateMachine):
    """Reminders are made, deleted, due and delivered as the model says, whatever happens around them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.during_turn = self.take_time
        self.model = Model(wall=T0)
        self.thread = HostThread(self.world)
        self.agent: Agent = self.thread.run(self.thread.open)

    def teardown(self) -> None:
        self.thread.stop()

    async def take_time(self, turn: Turn) -> None:
        text = turn.messages[0].text
        await trio.sleep(int(text) if text.isdigit() else REMINDER_TURN / 1000)

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
        if killed:
            self.world.store.die()
        await self.thread.close()
        self.world.store = FaultyStore(self.world.store.inner)
        self.world.step(seconds(down))
        agent = await self.thread.open()
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
