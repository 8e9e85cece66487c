from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.restorations import Restorations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Restorer:
    """Takes a second to restore a session, and notes how many it is at."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.most_at_once = 0

    async def restore(self, session_id: str) -> None:
        self.began.append(session_id)
        self.most_at_once = max(self.most_at_once, len(self.began) - len(self.ended))
        await trio.sleep(1)
        self.ended.append(session_id)


async def test_many_are_restored_a_few_at_a_time_in_their_order(autojump_clock: trio.abc.Clock) -> None:
    """What is asked for together waits for as many tasks as are allowed, and the longest waiting is next."""
    restorer, restorations = Restorer(), Restorations(3)
    wanted = [str(number) for number in range(10)]
    async with trio.open_nursery() as nursery:
        restorations.begin(nursery.start_soon, restorer.restore)
        for session_id in wanted:
            restorations.soon(session_id)
    assert (restorer.began, sorted(restorer.ended), restorer.most_at_once) == (wanted, wanted, 3)
    assert trio.current_time() == 4.0


async def test_what_was_asked_for_before_is_restored_from_the_beginning(autojump_clock: trio.abc.Clock) -> None:
    """A host learns what to restore before there is anybody to do it; no more tasks are started than are needed."""
    restorer, restorations = Restorer(), Restorations(3)
    restorations.soon("a")
    restorations.soon("b")
    started = 0
    async with trio.open_nursery() as nursery:

        def start(work: Callable[[], Awaitable[None]]) -> None:
            nonlocal started
            started += 1
            nursery.start_soon(work)

        restorations.begin(start, restorer.restore)
    assert (sorted(restorer.began), started, trio.current_time()) == (["a", "b"], 2, 1.0)


async def test_a_quiet_host_keeps_no_task_for_restorations(autojump_clock: trio.abc.Clock) -> None:
    """A task ends when nothing waits any more, and another begins when something does."""
    restorer, restorations = Restorer(), Restorations(3)
    async with trio.open_nursery() as nursery:
        restorations.begin(nursery.start_soon, restorer.restore)
        for session_id in ("a", "b"):
            assert not nursery.child_tasks
            restorations.soon(session_id)
            assert len(nursery.child_tasks) == 1
            await trio.sleep(2)
    assert restorer.ended == ["a", "b"]


async def test_a_task_that_is_at_work_takes_what_comes_when_no_other_may(autojump_clock: trio.abc.Clock) -> None:
    """Once all tasks there may be are at work, what comes waits for the first that is done."""
    restorer, restorations = Restorer(), Restorations(1)
    async with trio.open_nursery() as nursery:
        restorations.begin(nursery.start_soon, restorer.restore)
        restorations.soon("a")
        await trio.sleep(0.5)
        restorations.soon("b")
        await wait_all_tasks_blocked()
        assert (restorer.began, len(nursery.child_tasks)) == (["a"], 1)
    assert (restorer.ended, trio.current_time()) == (["a", "b"], 2.0)


async def test_after_the_end_nothing_is_restored(autojump_clock: trio.abc.Clock) -> None:
    """A host that has stopped may still be asked; there is no nursery any more."""
    restorer, restorations = Restorer(), Restorations(3)
    async with trio.open_nursery() as nursery:
        restorations.begin(nursery.start_soon, restorer.restore)
        restorations.soon("a")
        nursery.cancel_scope.cancel()
    restorations.end()
    restorations.soon("b")
    assert (restorer.began, restorer.ended) == (["a"], [])
