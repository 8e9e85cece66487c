"""Calls from asyncio into trio that are cancelled, and what becomes of their work."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from whenidle import MemoryStore, aio
from whenidle_actors.stores.base import Batch

from .loops import Run, host, until


class SlowStore(MemoryStore):
    """Takes its time over a commit once it is told to, whoever is cancelled meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.hold: trio.Event | None = None
        self.began = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold commits that begin inside the block until the block ends."""
        hold = self.hold = trio.Event()
        try:
            yield
        finally:
            self.hold = None
            hold.set()

    async def commit(self, batch: Batch) -> None:
        """Commit when let go."""
        with trio.CancelScope(shield=self.hold is not None):
            if self.hold is not None:
                self.began += 1
                await self.hold.wait()
            await super().commit(batch)


def test_a_cancelled_caller_cancels_the_work(run: Run) -> None:
    """`CancelledError` in asyncio is `Cancelled` in trio, and is raised with its message when that has unwound."""
    steps = list[str]()

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
            steps.append("unwound")

    async def main() -> None:
        async with host():
            task = asyncio.create_task(aio.run_trio(work))
            await asyncio.sleep(0)
            task.cancel("enough")
            with pytest.raises(asyncio.CancelledError, match="enough"):
                await task
            assert steps == ["unwound"]

    run(main())


def test_a_commit_under_way_is_awaited_although_the_caller_is_cancelled(run: Run) -> None:
    """The call raises `CancelledError` only when the commit is durable, however often it is cancelled."""
    store = SlowStore()

    async def main() -> None:
        async with host(store=store) as there:
            with store.held():
                task = asyncio.create_task(there.create_agent("ada"))
                await until(lambda: store.began == 1)
                for _ in range(3):
                    task.cancel()
                    await asyncio.sleep(0)
                ended_early = task.done()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not ended_early
            assert (await there.agent("ada")).id == "ada"

    run(main())


def test_a_message_whose_commit_is_under_way_is_queued_although_the_caller_is_cancelled(run: Run) -> None:
    """The agent's mailbox carries out what it has begun; only the answer is dropped."""
    store = SlowStore()

    async def main() -> None:
        async with host(store=store) as there:
            ada = await there.create_agent("ada")
            with store.held():
                task = asyncio.create_task(ada.inject("kept"))
                await until(lambda: store.began == 1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert [message.text for message in (await ada.inbox()).next_step] == ["kept"]

    run(main())


def test_a_caller_cancelled_before_its_turn_changes_nothing(run: Run) -> None:
    """A message that waits behind another's commit is withdrawn."""
    store = SlowStore()

    async def main() -> None:
        async with host(store=store) as there:
            ada = await there.create_agent("ada")
            with store.held():
                first = asyncio.create_task(ada.inject("kept"))
                await until(lambda: store.began == 1)
                second = asyncio.create_task(ada.inject("withdrawn"))
                await asyncio.sleep(0)
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
            await first
            assert [message.text for message in (await ada.inbox()).next_step] == ["kept"]

    run(main())


def test_what_the_work_raises_while_cancelled_is_the_truth(run: Run) -> None:
    """An exception of the clean-up wins over `CancelledError`, as in one task."""

    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("clean-up")

    async def main() -> None:
        async with host():
            task = asyncio.create_task(aio.run_trio(work))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(ValueError, match="clean-up"):
                await task

    run(main())


def test_asyncio_timeouts_end_calls(run: Run) -> None:
    """`asyncio.timeout` around a call raises `TimeoutError`, and the task is not cancelled afterwards."""

    async def main() -> None:
        async with host() as there:
            ada = await there.create_agent("ada")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await ada.run_maintenance(asyncio.Event().wait)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            await ada.when_idle()

    run(main())


def test_a_task_group_ends_its_calls(run: Run) -> None:
    """One failure in a task group cancels the calls beside it, and they end."""

    async def fail() -> None:
        raise ValueError("one")

    async def main() -> None:
        async with host():
            with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - it is about the block
                async with asyncio.TaskGroup() as group:
                    group.create_task(aio.run_trio(trio.sleep_forever))
                    group.create_task(fail())
            assert [str(error) for error in caught.value.exceptions] == ["one"]

    run(main())
