from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.actor import Actor
from whenidle_actors.errors import ActorRestarted, ActorStopped, InvalidArgument, MailboxFull
from whenidle_actors.mailbox import MailboxPolicy, MailboxStatistics, Overflow, Undelivered
from whenidle_actors.scheduler import Scheduler, open_scheduler

if TYPE_CHECKING:
    from trio.testing import MockClock

    from whenidle_actors.mailbox import DeadLetter


class Gated(Actor):
    """Handles messages once the gate is open."""

    def __init__(self, name: str, scheduler: Scheduler, **options: Any) -> None:
        super().__init__(name, scheduler, **options)
        self.gate = trio.Event()
        self.seen: list[Any] = []
        self.error: Exception | None = None

    async def receive(self, message: Any) -> Any:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.seen.append(message)
        return message


async def occupied(scheduler: Scheduler, **options: Any) -> Gated:
    """Return an actor that handles the message `first` and is blocked in it."""
    actor = Gated("a", scheduler, **options)
    actor.tell("first")
    await wait_all_tasks_blocked()
    return actor


async def test_messages_are_handled_one_at_a_time_in_the_order_they_came(autojump_clock: MockClock) -> None:
    """FIFO, tells and asks alike, and never two handlers of one actor at once."""
    running: list[int] = []
    seen: list[int] = []

    class Serial(Actor):
        async def receive(self, message: int) -> int:
            assert not running
            running.append(message)
            await trio.sleep(message % 3)
            running.clear()
            seen.append(message)
            return message

    async with open_scheduler() as scheduler, trio.open_nursery() as nursery:
        actor = Serial("a", scheduler)
        for n in range(0, 20, 2):
            actor.tell(n)
            nursery.start_soon(actor.ask, n + 1)
            await wait_all_tasks_blocked()
    assert seen == list(range(20))


async def test_system_messages_go_first_and_keep_their_own_order() -> None:
    """Priority: all system messages before the next user message, each FIFO."""
    async with open_scheduler() as scheduler:
        actor = await occupied(scheduler)
        for n in range(3):
            actor.tell(f"user {n}")
            actor.tell_system(f"system {n}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.ask_system, "system ask")
            await wait_all_tasks_blocked()
            actor.gate.set()
        await wait_all_tasks_blocked()
        assert actor.seen == [
            *("first", "system 0", "system 1", "system 2", "system ask"),
            *("user 0", "user 1", "user 2"),
        ]


async def test_a_system_message_wakes_an_idle_actor() -> None:
    """It needs no user message to be served."""
    async with open_scheduler() as scheduler:
        actor = Gated("a", scheduler)
        actor.gate.set()
        actor.tell_system("up")
        await wait_all_tasks_blocked()
        assert await actor.ask_system("again") == "again"
        assert actor.seen == ["up", "again"]


async def test_a_full_mailbox_rejects() -> None:
    """Policy *reject*: tell and ask raise `MailboxFull`, and nothing was accepted."""
    async with open_scheduler() as scheduler:
        actor = await occupied(scheduler, mailbox=MailboxPolicy(capacity=2))
        actor.tell(1)
        actor.tell(2)
        with pytest.raises(MailboxFull, match="mailbox of 'a' already holds 2 messages"):
            actor.tell(3)
        with pytest.raises(MailboxFull):
            await actor.ask(4)
        assert actor.statistics() == MailboxStatistics(
            depth=2,
            system_depth=0,
            capacity=2,
            accepted=3,
            processed=1,
            withdrawn=0,
            dead_letters=0,
            restarts=0,
        )
        actor.gate.set()
        await wait_all_tasks_blocked()
        assert actor.seen == ["first", 1, 2]
        actor.tell(5)


async def test_a_full_mailbox_drops_its_oldest() -> None:
    """Policy *drop_oldest*: the oldest becomes a dead letter; if it is an ask, that fails."""
    letters: list[DeadLetter] = []
    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        actor = await occupied(scheduler, mailbox=MailboxPolicy(2, Overflow.DROP_OLDEST))
        failed: list[str] = []

        async def ask(message: str) -> None:
            try:
                await actor.ask(message)
            except MailboxFull:
                failed.append(message)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "asked")
            await wait_all_tasks_blocked()
            for n in range(3):
                actor.tell(n)
        assert failed == ["asked"]
        assert [(letter.message, letter.reason, letter.asked) for letter in letters] == [
            ("asked", Undelivered.OVERFLOW, True),
            (0, Undelivered.OVERFLOW, False),
        ]
        actor.gate.set()
        await wait_all_tasks_blocked()
        assert actor.seen == ["first", 1, 2]
        assert actor.statistics().dead_letters == 2


async def test_a_full_mailbox_drops_the_newest() -> None:
    """Policy *drop_newest*: a tell becomes a dead letter, an ask raises."""
    letters: list[DeadLetter] = []
    async with open_scheduler(on_dead_letter=letters.append) as scheduler:
        actor = await occupied(scheduler, mailbox=MailboxPolicy(1, Overflow.DROP_NEWEST))
        actor.tell(1)
        actor.tell(2)
        with pytest.raises(MailboxFull):
            await actor.ask(3)
        assert [letter.message for letter in letters] == [2]
        actor.gate.set()
        await wait_all_tasks_blocked()
        assert actor.seen == ["first", 1]


async def test_system_messages_use_no_capacity() -> None:
    """A mailbox full of user messages takes any number of system messages, and they fill nothing."""
    async with open_scheduler() as scheduler:
        actor = await occupied(scheduler, mailbox=MailboxPolicy(1))
        for n in range(5):
            actor.tell_system(n)
        actor.tell("user")
        actor.tell_system(5)
        assert (actor.statistics().depth, actor.statistics().system_depth) == (1, 6)


async def test_a_withdrawn_ask_gives_its_place_back(autojump_clock: MockClock) -> None:
    """What no longer counts leaves room at once, in whatever position it was."""
    letters: list[DeadLetter] = []
    for overflow in Overflow:
        async with open_scheduler(on_dead_letter=letters.append) as scheduler:
            actor = await occupied(scheduler, mailbox=MailboxPolicy(2, overflow))
            with trio.move_on_after(1):
                await actor.ask("withdrawn")
            actor.tell(1)
            actor.tell(2)
            assert (actor.statistics().depth, actor.statistics().withdrawn) == (2, 1)
            if overflow is Overflow.DROP_OLDEST:
                actor.tell(3)
                assert actor.statistics().depth == 2
            actor.gate.set()
            await wait_all_tasks_blocked()
            assert actor.seen == (["first", 2, 3] if overflow is Overflow.DROP_OLDEST else ["first", 1, 2])
    assert [letter.message for letter in letters] == [1]


async def test_withdrawn_asks_do_not_pile_up(autojump_clock: MockClock) -> None:
    """Callers that time out again and again cost a blocked actor no memory, and no order is lost."""
    async with open_scheduler() as scheduler:
        actor = await occupied(scheduler)
        for n in range(500):
            if n % 100 == 0:
                actor.tell(n)
            for ask in (actor.ask, actor.ask_system):
                with trio.move_on_after(1):
                    await ask("withdrawn")
        assert actor.backlog is not None
        assert len(actor.backlog) <= 5 + 18
        assert actor.busy is not None
        assert actor.busy.system is not None
        assert len(actor.busy.system) <= 18
        assert (actor.statistics().depth, actor.statistics().system_depth) == (5, 0)
        actor.gate.set()
        await wait_all_tasks_blocked()
        assert actor.seen == ["first", 0, 100, 200, 300, 400]
        assert actor.statistics().withdrawn == 1000


async def test_no_withdrawn_ask_is_swept_while_they_are_the_smaller_part(autojump_clock: MockClock) -> None:
    """Sweeping waits until it pays: at most half of a long backlog is withdrawn."""
    async with open_scheduler() as scheduler:
        actor = await occupied(scheduler)
        for n in range(40):
            actor.tell(n)
        for _ in range(40):
            with trio.move_on_after(1):
                await actor.ask("withdrawn")
        assert actor.backlog is not None
        assert (len(actor.backlog), actor.backlog.depth) == (80, 40)
        with trio.move_on_after(1):
            await actor.ask("withdrawn")
        assert (len(actor.backlog), actor.backlog.depth) == (40, 40)


async def test_a_capacity_below_one_is_refused() -> None:
    """Such a mailbox could take nothing; the message says what to write."""
    with pytest.raises(InvalidArgument, match="capacity of 0 could hold nothing; write 1 or more, or None"):
        MailboxPolicy(0)


async def test_a_failing_dead_letter_hook_is_logged_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the hook raises does not reach the teller."""

    def fail(letter: DeadLetter) -> None:
        raise ValueError(letter.message)

    async with open_scheduler(on_dead_letter=fail) as scheduler:
        actor = Gated("a", scheduler)
        await actor.stop()
        actor.tell(1)
        assert actor.statistics().dead_letters == 1
    assert "the dead-letter hook failed" in caplog.text


async def test_dead_letters_are_logged_without_their_content_by_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log names actor, reason and type, and shows nothing a user wrote."""
    async with open_scheduler() as scheduler:
        actor = Gated("a", scheduler)
        await actor.stop()
        actor.tell("secret")
    assert "dead letter for actor 'a' (stopped): a str" in caplog.text
    assert "secret" not in caplog.text


async def test_depth_is_right_after_the_turn_of_a_withdrawn_ask(autojump_clock: MockClock) -> None:
    """What was withdrawn leaves the count once, when it is withdrawn."""
    async with open_scheduler() as scheduler:
        actor = await occupied(scheduler)
        with trio.move_on_after(1):
            await actor.ask("withdrawn")
        for n in range(3):
            actor.tell(n)
        gate, actor.gate = actor.gate, trio.Event()
        gate.set()
        await wait_all_tasks_blocked()
        assert (actor.seen, actor.statistics().depth) == (["first"], 2)


@pytest.mark.parametrize("ending", ["stop", "fault"])
async def test_a_dead_letter_hook_may_cancel_the_caller_of_another_letter(
    ending: str, autojump_clock: MockClock
) -> None:
    """Each message is accounted for once, even if being told of one ends the wait for the next."""
    scope = trio.CancelScope()
    letters: list[DeadLetter] = []

    def note(letter: DeadLetter) -> None:
        letters.append(letter)
        scope.cancel()

    async with open_scheduler(on_dead_letter=note) as scheduler:
        actor = await occupied(scheduler)

        async def ask(message: str, scope: trio.CancelScope) -> None:
            with scope, contextlib.suppress(ActorStopped, ActorRestarted):
                await actor.ask(message)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "one", trio.CancelScope())
            await wait_all_tasks_blocked()
            nursery.start_soon(ask, "two", scope)
            await wait_all_tasks_blocked()
            if ending == "stop":
                actor.begin_stop()
            else:
                actor.error = ValueError()
                actor.gate.set()
        await wait_all_tasks_blocked()
        assert [letter.message for letter in letters] == ["one", "two"]
        statistics = actor.statistics()
        assert (statistics.accepted, statistics.dead_letters, statistics.withdrawn) == (3, 2, 0)
        assert statistics.depth == 0
