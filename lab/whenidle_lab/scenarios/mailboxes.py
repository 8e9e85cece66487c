"""A scenario about actors alone: no host, no store, no agents (SPEC 2.9)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, NoReturn

import trio

from whenidle_actors.actor import Actor
from whenidle_actors.errors import (
    ActorRestarted,
    ActorStopped,
    AgentFaulted,
    AskTimeout,
    MailboxDeadlock,
    MailboxFull,
)
from whenidle_actors.mailbox import MailboxPolicy, Overflow, Undelivered
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.supervision import ActorExit, Supervision
from whenidle_lab.scenario import Broken, Scenario

if TYPE_CHECKING:
    from whenidle_actors.mailbox import DeadLetter
    from whenidle_actors.scheduler import Scheduler
    from whenidle_lab.world import World

_POLICIES = (
    MailboxPolicy(),
    MailboxPolicy(2, Overflow.REJECT),
    MailboxPolicy(2, Overflow.DROP_OLDEST),
    MailboxPolicy(2, Overflow.DROP_NEWEST),
)

_DEEDS = ("nothing", "wait", "fail", "exit", "stop", "ask", "tell", "nothing")
"""What a message has the actor that handles it do."""

_ENDS = (ActorRestarted, ActorStopped, AgentFaulted, AskTimeout, MailboxDeadlock, MailboxFull, ActorExit)


class Planned(Exception):
    """What an actor raises that is told to fail."""


class Mailboxes(Scenario):
    """Actors tell and ask one another in circles, with deadlines, and fail, are restarted and stopped meanwhile.

    Each message that was accepted is handled, withdrawn or a dead letter, once; those of one sender to one actor are
    handled in the order in which they were sent; nobody handles two at a time; every ask ends.
    """

    name = "mailboxes"

    async def play(self, world: World) -> None:
        """Have senders speak to four actors."""
        troupe = _Troupe(world)
        async with open_scheduler(
            choose=world.choose_actor,
            random=Random(0),  # noqa: S311 - jitter, the same in every replay
            max_idle_workers=2,
            on_dead_letter=troupe.bury,
        ) as scheduler:
            troupe.engage(scheduler)
            async with trio.open_nursery() as nursery:
                for number in range(2 + world.draw(2)):
                    nursery.start_soon(troupe.speak, f"sender {number}")
            await world.wait(60)
            for actor in troupe.actors:
                await actor.stop()
        troupe.judge()


class _Troupe:
    """The actors, and the account of every message."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.actors: list[_Player] = []
        self.handled: list[str] = []
        self.dead: list[str] = []
        self.accepted: list[str] = []
        self.waiting: set[str] = set()
        self.unsure: set[str] = set()
        """Asks that ended without an answer: they may have been handled or not."""

    def engage(self, scheduler: Scheduler) -> None:
        """Make the actors."""
        for number in range(4):
            policy = self.world.choose(_POLICIES)
            supervision = Supervision(intensity=2, window=10.0, backoff_initial=0.1, backoff_max=1.0)
            self.actors.append(_Player(f"actor {number}", scheduler, self, policy, supervision))

    async def speak(self, name: str) -> None:
        """Send some messages, each a second or third time at once where nobody waits for an answer."""
        world, number = self.world, 0
        for _ in range(3 + world.draw(4)):
            actor, asks = world.choose(self.actors), world.draw(2)
            for _ in range(1 if asks else 1 + world.draw(3)):
                message = _Message(f"{name}.{number}", actor.name, world.choose(_DEEDS))
                number += 1
                if asks:
                    await self.ask(actor, message, world.choose((None, 0.05, 1.0)))
                else:
                    self.tell(actor, message)
            await world.wait(world.draw_span(0.1))

    def tell(self, actor: _Player, message: _Message) -> None:
        """Tell, and take note whether it was accepted."""
        self.accepted.append(message.id)
        try:
            actor.tell(message)
        except MailboxFull:
            self.accepted.remove(message.id)

    async def ask(self, actor: _Player, message: _Message, deadline: float | None) -> None:
        """Ask, and see that there is an end to it."""
        self.waiting.add(message.id)
        try:
            answer = await actor.ask(message, deadline=deadline)
            if answer != message.id:
                self.fail(f"{message.id} was answered {answer!r}")
            if message.id not in self.handled:
                self.fail(f"{message.id} was answered and not handled")
        except (*_ENDS, Planned):
            self.unsure.add(message.id)
        finally:
            self.waiting.discard(message.id)

    def bury(self, letter: DeadLetter) -> None:
        """Take note of a dead letter: a tell that waits survives a restart of its actor."""
        if letter.reason is Undelivered.RESTARTED and not letter.asked:
            self.fail(f"{letter.message.id} was told, and did not survive a restart of {letter.actor}")
        self.dead.append(letter.message.id)

    def judge(self) -> None:
        """Judge the account when all have ended."""
        if self.waiting:
            self.fail(f"asks that never ended: {sorted(self.waiting)}")
        for message in self.accepted:
            times = self.handled.count(message) + self.dead.count(message)
            if times != 1:
                self.fail(f"{message} was told once, and handled or buried {times} times")
        for actor in self.actors:
            found = actor.statistics()
            ended = found.processed + found.withdrawn + found.dead_letters + found.depth + found.system_depth
            if found.accepted != ended or found.depth:
                self.fail(f"the account of {actor.name} does not come out: {found}")

    def fail(self, text: str) -> NoReturn:
        """Say that something does not hold."""
        broken = Broken("mailboxes", text)
        with self.world.judging():
            raise broken
        raise broken  # the run is over; so is the scenario


class _Message:
    """One message; its id says who sent it, as the how-manieth."""

    def __init__(self, id: str, to: str, deed: str) -> None:  # noqa: A002 - a name of the field
        self.id = id
        self.to = to
        self.deed = deed


class _Player(Actor):
    """Does what a message says, which is drawn."""

    __slots__ = ("_last", "_playing", "_troupe")

    def __init__(
        self, name: str, scheduler: Scheduler, troupe: _Troupe, mailbox: MailboxPolicy, supervision: Supervision
    ) -> None:
        super().__init__(name, scheduler, mailbox=mailbox, supervision=supervision)
        self._troupe = troupe
        self._playing: str | None = None
        self._last: dict[str, int] = {}

    async def started(self) -> None:
        """Fail to start, now and then."""
        if self._troupe.world.draw(8) == 1:
            raise Planned("start")

    async def receive(self, message: Any) -> str:
        """See to the order, and do the deed."""
        troupe = self._troupe
        troupe.world.note("handled", self.name, message=message.id, deed=message.deed)
        if self._playing is not None:
            troupe.fail(f"{self.name} handles {message.id} while it handles {self._playing}")
        sender, _, number = message.id.rpartition(".")
        if self._last.get(sender, -1) >= int(number):
            troupe.fail(f"{self.name} handles {message.id} behind {sender}.{self._last[sender]}")
        self._last[sender] = int(number)
        troupe.handled.append(message.id)
        self._playing = message.id
        try:
            await self._act(message)
        finally:
            self._playing = None
        return str(message.id)

    async def _act(self, message: _Message) -> None:
        world, deed = self._troupe.world, message.deed
        if deed == "wait":
            await world.wait(world.draw_span(1))
        elif deed == "fail":
            raise Planned(message.id)
        elif deed == "exit":
            raise ActorExit
        elif deed == "stop":
            self.begin_stop()
        elif deed in {"ask", "tell"}:
            await self._pass_on(message, asks=deed == "ask")

    async def _pass_on(self, message: _Message, *, asks: bool) -> None:
        """Send another actor, or oneself, a message of one's own."""
        troupe = self._troupe
        actor = troupe.world.choose(troupe.actors)
        own = _Message(f"{message.id}/{self.name}.0", actor.name, troupe.world.choose(_DEEDS))
        if asks:
            await troupe.ask(actor, own, troupe.world.choose((None, 0.05)))
        else:
            troupe.tell(actor, own)
