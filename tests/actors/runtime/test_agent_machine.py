"""One agent against a plain model: any sequence of what its users, its turns and its machine can do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.actors.faulty_store import Fault, FaultyStore
from whenidle_actors.errors import AgentBusy, AgentDisposed, CommitUncertain, MaintenanceAborted, StoreFull

from .worlds import Crash, Script, assert_replays, hosted, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn


@attrs.define
class Item:
    """A message."""

    text: str
    wake: bool


@attrs.define
class Model:
    """What should be, with lists."""

    next_turn: list[Item] = attrs.Factory(list)
    next_step: list[Item] = attrs.Factory(list)
    awake: bool = False
    turn: list[Item] | None = None
    attempt: int = 0
    redelivery: list[Item] | None = None
    claimed: bool = False
    taken: list[tuple[list[str], int]] = attrs.Factory(list)

    def insert(self, lane: list[Item], text: str, *, wake: bool) -> None:
        lane.append(Item(text, wake))
        self.awake = self.awake or wake
        self.run()

    def run(self) -> None:
        """Start a turn if nothing runs and there is a reason to."""
        waking = self.awake and any(item.wake for item in self.next_turn + self.next_step)
        if self.turn is not None or self.claimed or not (waking or self.redelivery):
            return
        if self.redelivery is not None:
            self.turn, self.redelivery, self.attempt = self.redelivery, None, self.attempt + 1
        else:
            self.turn, self.attempt = [*self.next_step, *self.next_turn[:1]], 1
            self.next_step, self.next_turn = [], self.next_turn[1:]
        self.taken.append(([item.text for item in self.turn], self.attempt))

    def step(self) -> list[str]:
        assert self.turn is not None
        taken, self.next_step = self.next_step, []
        self.turn += taken
        return [item.text for item in taken]

    def end(self) -> None:
        """Let the turn end, with an outcome that is no interruption."""
        self.turn = None
        self.run()

    def release(self) -> None:
        self.claimed = False
        self.run()

    def cancel(self, *, keep: bool) -> None:
        if self.turn is None and not self.claimed:
            return
        if not keep:
            self.next_turn, self.next_step = [], []
        if self.turn is not None:
            self.awake = False
            self.end()
        else:
            self.release()

    def dispose(self) -> None:
        """Be disposed and restored."""
        self.turn, self.claimed = None, False
        self.run()

    def restart(self) -> None:
        """Lose the process."""
        if self.turn is not None:
            self.redelivery, self.turn = self.turn, None
        self.dispose()


class Driver:
    """A host in a trio run of its own thread, so that a synchronous test can act step by step."""

    def __init__(self) -> None:
        self.store = FaultyStore()
        self.script = Script()
        self.script.autojump = False
        self.agent: Agent
        self.taken: list[tuple[list[str], int]] = []
        self.steps: list[list[str]] = []
        self.claims: list[object] = []
        self.busy = 0
        """Turns and maintenance tasks in flight."""
        self._script_command = ""
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._wait()

    def call(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Run an async function in the host's thread, then everything that follows from it."""

        async def work() -> Any:
            try:
                return await function(*args)
            finally:
                await settled()

        return trio.from_thread.run(work, trio_token=self._token)

    def next_life(self, how: str) -> None:
        """End the host, in order or not, or the whole run, and wait for what follows."""

        def leave() -> None:
            self._how = how
            self._leave.set()

        self._ready.clear()
        self.store.dead = how == "crash"
        trio.from_thread.run_sync(leave, trio_token=self._token)
        if how == "stop":
            self._thread.join()
        else:
            self._wait()

    def command(self, what: str) -> None:
        """Tell the turn or the maintenance task in flight what to do."""

        async def tell() -> None:
            self._script_command = what
            self._told.set()

        self.call(tell)

    async def claim(self) -> None:
        """Start a maintenance task that waits for a command, beside the caller."""

        async def task() -> str:
            return await self._obey(None)

        async def run() -> None:
            try:
                self.claims.append(await self.agent.run_maintenance(task))
            except (AgentBusy, AgentDisposed, MaintenanceAborted) as error:
                self.claims.append(type(error))

        self._nursery.start_soon(run)

    def _wait(self) -> None:
        assert self._ready.wait(20), "the host hangs"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            trio.run(self._lives, clock=self.script)
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            self._failure = error
        finally:
            self._ready.set()

    async def _lives(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self.script.every_turn = self._turn
        self._how = ""
        async with trio.open_nursery() as self._nursery:
            while self._how != "stop":
                self._leave = trio.Event()
                try:
                    await self._live()
                except Crash:
                    self.store.revive()

    async def _live(self) -> None:
        async with hosted(self.store, self.script, shutdown_timeout=0) as self.host:
            known = await self.store.sessions()
            self.agent = await (self.host.agent("a") if known else self.host.create_agent("a"))
            await settled()
            self._ready.set()
            await self._leave.wait()
            if self._how == "crash":
                raise Crash

    async def _turn(self, turn: Turn) -> None:
        self.taken.append(([message.text for message in turn.messages], turn.attempt))
        await self._obey(turn)

    async def _obey(self, turn: Turn | None) -> str:
        self.busy += 1
        assert self.busy == 1, "a turn or maintenance task overlaps with another"
        try:
            while True:
                self._told = trio.Event()
                await self._told.wait()
                if self._script_command == "fail":
                    raise ValueError("as told")
                if self._script_command == "step" and turn is not None:
                    self.steps.append([message.text for message in await turn.next_step()])
                else:
                    return "done"
        finally:
            self.busy -= 1


VERBS = st.sampled_from(["followup", "steer", "inject"])


class AgentMachine(RuleBasedStateMachine):
    """Each rule does the same to the agent and to the model, and then they are compared."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.model = Model()
        self.count = 0

    def teardown(self) -> None:
        """Let everything end, see that the agent becomes idle, and end the run."""
        for _ in range(100):
            if self.model.claimed:
                self.release()
            elif self.model.turn is not None:
                self.end_turn("complete")
        self.driver.call(self.driver.agent.when_idle)
        self.driver.next_life("stop")

    def text(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def insert(self, verb: str, text: str) -> None:
        lane = self.model.next_turn if verb == "followup" else self.model.next_step
        self.model.insert(lane, text, wake=verb != "inject")

    @rule(verb=VERBS)
    def send(self, verb: str) -> None:
        text = self.text()
        self.driver.call(getattr(self.driver.agent, verb), text)
        self.insert(verb, text)

    @rule(verb=VERBS, fault=st.sampled_from([Fault.REFUSED, Fault.UNCERTAIN_LOST, Fault.UNCERTAIN_KEPT]))
    def send_while_the_store_fails(self, verb: str, fault: Fault) -> None:
        text = self.text()
        self.driver.store.will(fault)
        with pytest.raises((StoreFull, CommitUncertain)):
            self.driver.call(getattr(self.driver.agent, verb), text)
        if fault is Fault.UNCERTAIN_KEPT:
            self.insert(verb, text)

    @precondition(lambda self: self.model.next_turn or self.model.next_step)
    @rule(data=st.data(), replace=st.booleans())
    def change(self, data: st.DataObject, replace: bool) -> None:
        lane = data.draw(st.sampled_from([lane for lane in (self.model.next_turn, self.model.next_step) if lane]))
        item = data.draw(st.sampled_from(lane))
        view = self.driver.call(self.driver.agent.inbox)
        [name] = [message.id for message in view.next_turn + view.next_step if message.text == item.text]
        if replace:
            item.text = self.text()
            self.driver.call(self.driver.agent.replace, name, item.text)
        else:
            lane.remove(item)
            self.driver.call(self.driver.agent.remove, name)

    @precondition(lambda self: self.model.turn is not None)
    @rule(how=st.sampled_from(["complete", "fail"]))
    def end_turn(self, how: str) -> None:
        self.driver.command(how)
        self.model.end()

    @precondition(lambda self: self.model.turn is not None)
    @rule()
    def take_step(self) -> None:
        self.driver.command("step")
        assert self.driver.steps[-1] == self.model.step()

    @rule()
    def claim(self) -> None:
        free = self.model.turn is None and not self.model.claimed
        before = len(self.driver.claims)
        self.driver.call(self.driver.claim)
        assert self.driver.claims[before:] == ([] if free else [AgentBusy])
        self.model.claimed = self.model.claimed or free

    @precondition(lambda self: self.model.claimed)
    @rule()
    def release(self) -> None:
        self.driver.command("release")
        assert self.driver.claims[-1] == "done"
        self.model.release()

    @rule(keep=st.booleans())
    def cancel(self, keep: bool) -> None:
        claimed = self.model.claimed

        async def cancel() -> None:
            await self.driver.agent.cancel("stop", keep_inbox=keep)

        self.driver.call(cancel)
        assert not claimed or self.driver.claims[-1] is MaintenanceAborted
        self.model.cancel(keep=keep)

    @rule()
    def dispose(self) -> None:
        claimed = self.model.claimed

        async def dispose() -> None:
            await self.driver.agent.dispose()
            self.driver.agent = await self.driver.host.agent("a")

        self.driver.call(dispose)
        assert not claimed or self.driver.claims[-1] is AgentDisposed
        self.model.dispose()

    @rule(how=st.sampled_from(["restart", "crash"]))
    def restart(self, how: str) -> None:
        self.driver.next_life(how)
        self.model.restart()

    @invariant()
    def agrees(self) -> None:
        driver, model = self.driver, self.model
        view = driver.call(driver.agent.inbox)
        assert [message.text for message in view.next_turn] == [item.text for item in model.next_turn]
        assert [message.text for message in view.next_step] == [item.text for item in model.next_step]
        assert driver.taken == model.taken
        assert driver.agent.status.value == ("idle" if model.turn is None else "running")
        assert driver.busy == (model.turn is not None or model.claimed)
        driver.call(assert_replays, driver.agent)


def test_any_sequence_agrees_with_the_model() -> None:
    """Turns and maintenance never overlap, each message is taken once an attempt, log and live state agree."""
    run_state_machine_as_test(AgentMachine, settings=settings(stateful_step_count=30, derandomize=True))
