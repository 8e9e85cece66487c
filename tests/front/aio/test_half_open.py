"""Hosts on an asyncio loop that are cancelled or left while they open or close."""

import asyncio

import pytest
import trio

from whenidle import MemoryStore
from whenidle_actors.stores.base import Role

from .loops import LoopFactory, Run, host, until


class SlowToOpen(MemoryStore):
    """Opens when it is let go, unless it is cancelled first."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = trio.Event()
        self.steps = list[str]()

    async def open(self, role: Role) -> None:
        """Open when let go."""
        self.steps.append("opening")
        await self.let_go.wait()
        await super().open(role)
        self.steps.append("open")

    async def aclose(self) -> None:
        """Close."""
        self.steps.append("closed")
        await super().aclose()


def test_cancelled_at_any_moment_it_leaves_nothing(run: Run) -> None:
    """Each pass of the loop, from the start to the end of the trio run: it is cancelled, and all has stopped."""

    async def short() -> None:
        async with host() as there:
            await there.create_agent("ada")

    async def main() -> None:
        outcomes = set[str]()
        for passes in range(60):
            task = asyncio.create_task(short())
            for _ in range(passes):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            outcomes.add("cancelled" if task.cancelled() else repr(task.exception()))
            assert not trio.lowlevel.in_trio_run()
        assert outcomes <= {"cancelled", "None"}

    run(main())


@pytest.mark.parametrize("passes", range(6))
def test_cancelled_during_the_start_it_is_closed_again(run: Run, passes: int) -> None:
    """However far it has come; the store is closed if it was opened."""
    store = SlowToOpen()

    async def main() -> None:
        async def serve() -> None:
            async with host(store=store):
                raise AssertionError

        task = asyncio.create_task(serve())
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not trio.lowlevel.in_trio_run()

    run(main())
    assert store.steps in ([], ["opening"])


def test_cancelled_at_the_moment_it_is_open(run: Run) -> None:
    """A cancellation that meets the finished opening closes it in order."""
    store = SlowToOpen()

    async def main() -> None:
        async def serve() -> None:
            async with host(store=store):
                await asyncio.sleep(3600)

        task = asyncio.create_task(serve())
        await until(lambda: store.steps == ["opening"])
        store.let_go.set()
        await until(lambda: "open" in store.steps)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    assert store.steps == ["opening", "open", "closed"]


def test_a_host_entered_by_hand_is_closed_with_the_loop(loop_factory: LoopFactory) -> None:
    """Forgotten by who opened it, it is stopped when the loop shuts its asynchronous generators down."""
    store = SlowToOpen()
    store.let_go = trio.Event()
    left = list[object]()

    async def main() -> None:
        opening = host(store=store)
        left.append(opening)
        starting = asyncio.ensure_future(opening.__aenter__())
        await until(lambda: store.steps == ["opening"])
        store.let_go.set()
        await starting

    with asyncio.Runner(loop_factory=loop_factory) as started:
        started.run(main())
    assert store.steps == ["opening", "open", "closed"]
    assert not trio.lowlevel.in_trio_run()
