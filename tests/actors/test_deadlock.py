from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.actor import Actor
from whenidle_actors.deadlock import asking_actor, outside_mailbox
from whenidle_actors.errors import MailboxDeadlock
from whenidle_actors.scheduler import open_scheduler
from whenidle_actors.supervision import Supervision

from .doubles import sleeping

if TYPE_CHECKING:
    from trio.testing import MockClock


class Doer(Actor):
    """Runs the function it is told."""

    def receive(self, message: Any) -> Any:
        return message(self) if callable(message) else message


async def test_an_actor_that_asks_itself_is_told_at_once() -> None:
    """CASE 21: a self-ask raises `MailboxDeadlock` naming the cycle."""
    async with open_scheduler() as scheduler:
        actor = Doer("A", scheduler)
        with pytest.raises(MailboxDeadlock, match="this ask would wait for itself: A -> A") as caught:
            await actor.ask(lambda actor: actor.ask("me"))
        assert caught.value.cycle == ("A", "A")


async def test_two_actors_that_ask_each_other_are_told_at_once() -> None:
    """CASE 21: A asks B asks A names the cycle from the one whose ask is refused."""
    async with open_scheduler() as scheduler:
        a, b = Doer("A", scheduler), Doer("B", scheduler)
        with pytest.raises(MailboxDeadlock) as caught:
            await a.ask(lambda _: b.ask(lambda _: a.ask("back")))
        assert caught.value.cycle == ("B", "A", "B")


async def test_a_long_cycle_is_named_whole() -> None:
    """A, B, C, D, and D asks A."""
    async with open_scheduler() as scheduler:
        a, b, c, d = (Doer(name, scheduler) for name in "ABCD")
        with pytest.raises(MailboxDeadlock) as caught:
            await a.ask(lambda _: b.ask(lambda _: c.ask(lambda _: d.ask(lambda _: a.ask("back")))))
        assert caught.value.cycle == ("D", "A", "B", "C", "D")


async def test_system_asks_and_asks_with_a_deadline_count_as_well(autojump_clock: MockClock) -> None:
    """Neither priority nor a deadline makes an ask of oneself sensible; no time passes."""
    async with open_scheduler() as scheduler:
        actor = Doer("A", scheduler, supervision=Supervision(jitter=0, backoff_initial=1, intensity=9))
        for ask in (
            lambda actor: actor.ask_system("me"),
            lambda actor: actor.ask("me", deadline=3),
            lambda actor: actor.ask_system("me", deadline=3),
        ):
            start = trio.current_time()
            with pytest.raises(MailboxDeadlock):
                await actor.ask(ask)
            assert trio.current_time() == start
            await actor.ask("restarted")


async def test_a_handler_may_catch_the_refusal_and_go_on() -> None:
    """The refused ask leaves nothing behind: the same actors can be asked afterwards."""

    async def work(actor: Actor) -> object:
        with pytest.raises(MailboxDeadlock):
            await actor.ask("me")
        return await other.ask("you")

    async with open_scheduler() as scheduler:
        actor, other = Doer("A", scheduler), Doer("B", scheduler)
        assert await actor.ask(work) == "you"
        assert await actor.ask("again") == "again"


async def test_asks_of_a_handlers_child_tasks_are_the_handlers() -> None:
    """A task in a nursery of the handler works for the actor: its self-ask is refused."""
    cycles: list[tuple[str, ...]] = []

    async def ask_back(actor: Actor) -> None:
        with pytest.raises(MailboxDeadlock) as caught:
            await actor.ask("me")
        cycles.append(caught.value.cycle)

    async def work(actor: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_back, actor)

    async with open_scheduler() as scheduler:
        await Doer("A", scheduler).ask(work)
    assert cycles == [("A", "A")]


async def test_each_of_several_asks_at_once_is_an_edge(autojump_clock: MockClock) -> None:
    """While A asks B and C together, an ask of A from either is refused; answered edges are gone."""
    cycles: list[tuple[str, ...]] = []

    async def ask_back(_: Actor) -> None:
        await trio.sleep(5)
        with pytest.raises(MailboxDeadlock) as caught:
            await a.ask("back")
        cycles.append(caught.value.cycle)

    async def ask_both(_: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(b.ask, sleeping(1))
            nursery.start_soon(b.ask, sleeping(1))
            nursery.start_soon(c.ask, ask_back)

    async with open_scheduler() as scheduler:
        a, b, c = (Doer(name, scheduler) for name in "ABC")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(a.ask, ask_both)
            await trio.sleep(3)  # b has answered: it may ask a
            assert await b.ask(lambda _: a.ask("later")) == "later"
    assert cycles == [("C", "A", "C")]


async def test_one_of_two_edges_to_the_same_actor_keeps_counting(autojump_clock: MockClock) -> None:
    """Two asks of B, one answered: A still waits for B."""
    cycles: list[tuple[str, ...]] = []

    async def ask_back(_: Actor) -> None:
        with pytest.raises(MailboxDeadlock) as caught:
            await a.ask("back")
        cycles.append(caught.value.cycle)

    async def ask_twice(_: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(b.ask, "quick")
            await wait_all_tasks_blocked()
            nursery.start_soon(b.ask, ask_back)

    async with open_scheduler() as scheduler:
        a, b = Doer("A", scheduler), Doer("B", scheduler)
        await a.ask(ask_twice)
    assert cycles == [("B", "A", "B")]


async def test_an_edge_ends_with_the_reply_not_when_the_caller_resumes() -> None:
    """In the batch in which B answered A, B may ask A."""
    replies: list[object] = []

    async def ask_back(_: Actor) -> None:
        replies.append(await a.ask("back"))

    def answer_and_go_on(actor: Actor) -> str:
        actor.tell(ask_back)
        return "answer"

    async with open_scheduler() as scheduler:
        a, b = Doer("A", scheduler), Doer("B", scheduler)
        assert await a.ask(lambda _: b.ask(answer_and_go_on)) == "answer"
        await wait_all_tasks_blocked()
        assert replies == ["back"]
        assert b.statistics().restarts == 0


async def test_an_edge_ends_when_the_ask_is_cancelled(autojump_clock: MockClock) -> None:
    """A gave up on B, so B may ask A."""

    async def give_up(_: Actor) -> None:
        with trio.move_on_after(1):
            await b.ask(slowly_back)
        await trio.sleep(5)

    async def slowly_back(_: Actor) -> None:
        await trio.sleep(2)
        replies.append(await a.ask("back"))

    replies: list[object] = []
    async with open_scheduler() as scheduler:
        a, b = Doer("A", scheduler), Doer("B", scheduler)
        await a.ask(give_up)
        await wait_all_tasks_blocked()
        assert replies == ["back"]
        assert trio.current_time() == 6


async def test_an_edge_ends_when_the_handler_fails(autojump_clock: MockClock) -> None:
    """After A was restarted it waits for nobody."""

    async def fail_while_asking(_: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(b.ask, slowly_back)
            await trio.sleep(1)
            raise ValueError

    async def slowly_back(_: Actor) -> None:
        await trio.sleep(2)
        replies.append(await a.ask("back"))

    replies: list[object] = []
    async with open_scheduler() as scheduler:
        a, b = Doer("A", scheduler), Doer("B", scheduler)
        a.tell(fail_while_asking)
        await trio.sleep(10)
        assert replies == ["back"]


async def test_a_diamond_is_no_deadlock(autojump_clock: MockClock) -> None:
    """A asks B and C, both ask D: everybody is answered."""

    async def ask_both(_: Actor) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(b.ask, ask_d)
            nursery.start_soon(c.ask, ask_d)

    async def ask_d(actor: Actor) -> None:
        replies.append((actor.name, await d.ask(slow)))

    async def slow(_: Actor) -> str:
        await trio.sleep(1)
        return "done"

    replies: list[object] = []
    async with open_scheduler() as scheduler:
        a, b, c, d, e = (Doer(name, scheduler) for name in "ABCDE")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(a.ask, ask_both)
            await wait_all_tasks_blocked()
            # E looks along every edge of the diamond and finds no way back to itself.
            assert await e.ask(lambda _: a.ask("E too")) == "E too"
    assert sorted(replies, key=str) == [("B", "done"), ("C", "done")]


async def test_a_queue_behind_an_asking_actor_is_no_deadlock(autojump_clock: MockClock) -> None:
    """C asks A while A waits for B: it waits its turn."""
    async with open_scheduler() as scheduler:
        a, b, c = (Doer(name, scheduler) for name in "ABC")
        a.tell(lambda _: b.ask(sleeping(3)))
        await wait_all_tasks_blocked()
        assert await c.ask(lambda _: a.ask("patient")) == "patient"
        assert trio.current_time() == 3


async def test_work_beside_the_mailbox_may_ask_its_actor(autojump_clock: MockClock) -> None:
    """A task started inside `outside_mailbox` is served while its actor goes on."""
    replies: list[object] = []

    async def beside(actor: Actor) -> None:
        replies.append(await actor.ask("from beside"))

    async with open_scheduler() as scheduler, trio.open_nursery() as turns:

        async def start_turn(actor: Actor) -> None:
            with outside_mailbox():
                turns.start_soon(beside, actor)
            assert asking_actor() is actor
            await trio.sleep(1)

        await Doer("A", scheduler).ask(start_turn)
    assert replies == ["from beside"]


async def test_a_task_that_outlived_its_handler_is_nobodys_while_the_actor_is_idle(
    autojump_clock: MockClock,
) -> None:
    """Forgetting `outside_mailbox` is forgiven once the actor waits for nothing."""
    replies: list[object] = []

    async def late(actor: Actor) -> None:
        await trio.sleep(1)
        replies.append(await actor.ask("late"))

    async with open_scheduler() as scheduler, trio.open_nursery() as turns:
        await Doer("A", scheduler).ask(lambda actor: turns.start_soon(late, actor))
    assert replies == ["late"]


async def test_outside_of_handlers_nobody_asks() -> None:
    """A caller, a scheduler and an actor made inside a handler inherit nothing wrong."""
    asking: list[object] = []

    async def open_another(_: Actor) -> object:
        async with open_scheduler() as inner:
            return await Doer("inner", inner).ask(lambda actor: asking.append(asking_actor() is actor))

    async with open_scheduler() as scheduler:
        assert asking_actor() is None
        await Doer("A", scheduler).ask(open_another)
        assert asking_actor() is None
    assert asking == [True]
