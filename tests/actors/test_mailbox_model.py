"""The mailbox against a plain model: any sequence of what callers, handlers and time can do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from whenidle_actors.actor import Actor
from whenidle_actors.errors import ActorRestarted, ActorStopped, MailboxFull
from whenidle_actors.mailbox import MailboxPolicy, MailboxStatistics, Overflow, Undelivered
from whenidle_actors.scheduler import Scheduler
from whenidle_actors.supervision import Supervision

if TYPE_CHECKING:
    from whenidle_actors.mailbox import DeadLetter

STEPS = st.one_of(
    st.sampled_from(["tell", "tell_system", "ask", "ask_system", "finish", "finish", "fail"]).map(
        lambda step: (step, 0)
    ),
    st.tuples(st.just("cancel"), st.integers(0, 20)),
    st.tuples(st.just("stop"), st.just(0)),
)
POLICIES = st.builds(MailboxPolicy, st.none() | st.integers(1, 4), st.sampled_from(Overflow))


class Stepped(Actor):
    """Takes a message and keeps it until it is told how to end."""

    def __init__(self, scheduler: Scheduler, policy: MailboxPolicy) -> None:
        super().__init__("a", scheduler, mailbox=policy, supervision=Supervision(intensity=10**6, jitter=0))
        self.taken: list[int] = []
        self.endings: list[Exception | None] = []
        self.wake_up = trio.Event()

    async def receive(self, message: int) -> int:
        self.taken.append(message)
        await self.wake_up.wait()
        self.wake_up = trio.Event()
        ending = self.endings.pop()
        if ending is not None:
            raise ending
        return message

    def end(self, ending: Exception | None) -> None:
        self.endings.append(ending)
        self.wake_up.set()


class Model:
    """What should happen, with lists."""

    def __init__(self, policy: MailboxPolicy) -> None:
        self.policy = policy
        self.user: list[int] = []
        self.system: list[int] = []
        self.asks: set[int] = set()
        self.current: int | None = None
        self.taken: list[int] = []
        self.outcomes: dict[int, object] = {}
        self.letters: list[tuple[int, Undelivered, bool]] = []
        self.accepted = self.withdrawn = self.restarts = 0
        self.stopped = False

    def put(self, message: int, *, asked: bool, system: bool) -> type[Exception] | None:
        """Return what the caller gets at once, if it gets an exception."""
        if self.stopped:
            if asked:
                return ActorStopped
            self.accepted += 1
            self.letters.append((message, Undelivered.STOPPED, False))
            return None
        if not system and self.policy.capacity is not None and len(self.user) >= self.policy.capacity:
            if self.policy.overflow is Overflow.REJECT or (asked and self.policy.overflow is Overflow.DROP_NEWEST):
                return MailboxFull
            if self.policy.overflow is Overflow.DROP_NEWEST:
                self.accepted += 1
                self.letters.append((message, Undelivered.OVERFLOW, False))
                return None
            self._bury(self.user.pop(0), Undelivered.OVERFLOW, MailboxFull)
        self.accepted += 1
        if asked:
            self.asks.add(message)
        (self.system if system else self.user).append(message)
        self._take()
        return None

    def cancel(self, message: int) -> None:
        if message in self.asks and message not in self.outcomes:
            self.outcomes[message] = "cancelled"
            for queue in (self.user, self.system):
                if message in queue:
                    queue.remove(message)
                    self.withdrawn += 1

    def finish(self) -> None:
        if self.current is not None:
            self._answer(self.current, self.current)
            self.current = None
            self._take()

    def fail(self) -> None:
        if self.current is None:
            return
        self._answer(self.current, ValueError)
        self.current = None
        if self.stopped:
            return
        self.restarts += 1
        for message in [message for message in self.user if message in self.asks]:
            self.user.remove(message)
            self._bury(message, Undelivered.RESTARTED, ActorRestarted)
        self._take()

    def stop(self) -> None:
        self.stopped = True
        for message in self.system + self.user:
            self._bury(message, Undelivered.STOPPED, ActorStopped)
        self.system, self.user = [], []

    def _take(self) -> None:
        queue = self.system or self.user
        if self.current is None and queue:
            self.current = queue.pop(0)
            self.taken.append(self.current)

    def _answer(self, message: int, outcome: object) -> None:
        if message in self.asks:
            self.outcomes.setdefault(message, outcome)

    def _bury(self, message: int, reason: Undelivered, error: type[Exception]) -> None:
        self.letters.append((message, reason, message in self.asks))
        self._answer(message, error)

    def statistics(self) -> MailboxStatistics:
        return MailboxStatistics(
            depth=len(self.user),
            system_depth=len(self.system),
            capacity=self.policy.capacity,
            accepted=self.accepted,
            processed=len(self.taken),
            withdrawn=self.withdrawn,
            dead_letters=len(self.letters),
            restarts=self.restarts,
        )


class Game:
    """Plays the same steps on an actor and on the model."""

    def __init__(self, policy: MailboxPolicy, clock: MockClock, nursery: trio.Nursery) -> None:
        self.clock = clock
        self.nursery = nursery
        self.letters: list[DeadLetter] = []
        self.scheduler = Scheduler(on_dead_letter=self.letters.append)
        self.actor = Stepped(self.scheduler, policy)
        self.model = Model(policy)
        self.outcomes: dict[int, object] = {}
        self.scopes: dict[int, trio.CancelScope] = {}

    async def play(self, kind: str, number: int, message: int) -> None:
        if kind.startswith("ask"):
            self.ask(message, system=kind == "ask_system")
        elif kind.startswith("tell"):
            self.tell(message, system=kind == "tell_system")
        elif kind == "cancel" and self.scopes:
            asked = list(self.scopes)[number % len(self.scopes)]
            self.model.cancel(asked)
            self.scopes[asked].cancel()
        elif kind == "stop":
            self.model.stop()
            self.actor.begin_stop()
        elif kind in {"finish", "fail"} and self.model.current is not None:
            await self.end(failing=kind == "fail")
        await wait_all_tasks_blocked()
        self.compare()

    def tell(self, message: int, *, system: bool) -> None:
        expected = self.model.put(message, asked=False, system=system)
        raised: type[Exception] | None = None
        try:
            (self.actor.tell_system if system else self.actor.tell)(message)
        except MailboxFull:
            raised = MailboxFull
        assert raised is expected

    def ask(self, message: int, *, system: bool) -> None:
        async def wait() -> None:
            how = self.actor.ask_system if system else self.actor.ask
            with scope:
                try:
                    self.outcomes[message] = await how(message)
                except Exception as error:  # noqa: BLE001 - the model says which
                    self.outcomes[message] = type(error)
            if scope.cancelled_caught:
                self.outcomes[message] = "cancelled"

        error = self.model.put(message, asked=True, system=system)
        if error is not None:
            self.model.outcomes[message] = error
        scope = self.scopes[message] = trio.CancelScope()
        self.nursery.start_soon(wait)

    async def end(self, *, failing: bool) -> None:
        if failing:
            self.model.fail()
        else:
            self.model.finish()
        self.actor.end(ValueError() if failing else None)
        await wait_all_tasks_blocked()
        self.clock.jump(100)  # over the backoff

    def compare(self) -> None:
        assert self.actor.taken == self.model.taken
        assert self.outcomes == self.model.outcomes
        letters = [(letter.message, letter.reason, letter.asked) for letter in self.letters]
        assert letters == self.model.letters
        account = self.actor.statistics()
        assert account == self.model.statistics()
        waiting = account.depth + account.system_depth
        assert account.accepted == account.processed + account.withdrawn + account.dead_letters + waiting


@settings(deadline=None, max_examples=150)
@given(policy=POLICIES, steps=st.lists(STEPS, min_size=12, max_size=60))
def test_a_mailbox_does_what_a_pair_of_lists_would(policy: MailboxPolicy, steps: list[tuple[str, int]]) -> None:
    """Order, priority, capacity, overflow, withdrawal, restart and stop; every message accounted for."""
    clock = MockClock()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            game = Game(policy, clock, nursery)
            async with game.scheduler.open():
                game.actor.start()
                for message, (kind, number) in enumerate(steps):
                    await game.play(kind, number, message)
                nursery.cancel_scope.cancel()

    trio.run(main, clock=clock)
