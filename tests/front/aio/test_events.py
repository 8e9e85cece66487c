"""The stream of a host's events, read from asyncio."""

import asyncio
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio

from whenidle import EventGap, EventKind, HostEvent, aio, errors
from whenidle_actors.probe import Note, Work, unprobed

from .loops import Run, host, until


def kinds(events: list[HostEvent | EventGap]) -> list[str]:
    """Return what happened, commits and gaps left out."""
    told = (event.kind for event in events if isinstance(event, HostEvent))
    return [kind.value for kind in told if kind is not EventKind.COMMITTED]


def test_the_stream_is_read_to_its_end(run: Run) -> None:
    """Opened around the host, it tells of everything in order, the end of the host included."""
    seen: list[HostEvent | EventGap] = []

    async def main() -> None:
        async with asyncio.TaskGroup() as group:

            async def read(stream: aio.EventStream) -> None:
                async with stream:
                    ready.set()
                    async for event in stream:
                        seen.append(event)  # noqa: PERF401 - as it comes

            ready = asyncio.Event()
            async with host() as there:
                group.create_task(read(there.events()))
                await ready.wait()
                await (await there.create_agent("ada")).followup("x")
                await (await there.agent("ada")).when_idle()
        assert not trio.lowlevel.in_trio_run()

    run(main())
    assert kinds(seen)[:2] == ["session-created", "agent-started"]
    assert kinds(seen)[-2:] == ["agent-disposed", "host-stopped"]
    numbers = [event.sequence for event in seen if isinstance(event, HostEvent)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_readers_share_what_there_is(run: Run) -> None:
    """With several, all that was taken from the host is read at once: nobody keeps what another waits for."""
    seen = list[int]()

    async def main() -> None:
        async with host() as there, there.events() as stream, asyncio.TaskGroup() as group:

            async def read() -> None:
                async for event in stream:
                    assert isinstance(event, HostEvent)
                    seen.append(event.sequence)

            readers = [group.create_task(read()) for _ in range(3)]
            await asyncio.sleep(0)
            for number in range(20):
                await there.create_agent(f"agent-{number}")
            for _ in range(100):
                await asyncio.sleep(0)
            assert stream.statistics().received == len(seen) > 40
            assert stream.statistics().waiting == 0
            for reader in readers:
                reader.cancel()

    run(main())
    assert sorted(seen) == list(range(1, len(seen) + 1))


def test_a_reader_without_a_block_ends_with_the_host(run: Run) -> None:
    """It stops instead of failing."""
    seen: list[HostEvent | EventGap] = []

    async def main() -> None:
        async with host() as there:
            stream = there.events()

            async def read() -> None:
                async for event in stream:
                    seen.append(event)  # noqa: PERF401 - as it comes

            reader = asyncio.create_task(read())
            await there.create_agent("ada")
            await until(lambda: "agent-started" in kinds(seen))
        await reader
        with pytest.raises(aio.HostClosed):
            async with stream:
                raise AssertionError

    run(main())


def test_a_cancelled_read_takes_nothing(run: Run) -> None:
    """The event it would have got is the next one's."""

    async def main() -> None:
        async with host() as there, there.events() as stream:
            reads = [asyncio.create_task(stream.receive()) for _ in range(2)]
            await asyncio.sleep(0)
            await there.create_agent("ada")
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
            first = await stream.receive()
            got = [read.result() for read in reads if not read.cancelled()]
            assert [event.sequence for event in (*got, first) if isinstance(event, HostEvent)][-1] == len(got) + 1

    run(main())


def test_slow_readers_get_a_gap(run: Run) -> None:
    """The host does not wait; what was lost is told."""

    async def main() -> None:
        async with host() as there, there.events(capacity=2) as stream:
            await there.create_agent("ada")
            await there.create_agent("eve")
            gap = await stream.receive()
            assert isinstance(gap, EventGap)
            assert gap.first == 1
            following = await stream.receive()
            assert isinstance(following, HostEvent)
            assert following.sequence == gap.last + 1
            assert stream.statistics().lost == gap.lost

    run(main())


def test_a_closed_stream_says_so(run: Run) -> None:
    """Closing is idempotent, ends a read that waits, and a capacity is checked."""

    async def main() -> None:
        async with host() as there:
            with pytest.raises(errors.InvalidArgument):
                there.events(capacity=0)
            stream = there.events()
            read = asyncio.create_task(stream.receive())
            await asyncio.sleep(0)
            await stream.aclose()
            with pytest.raises(trio.ClosedResourceError):
                await read
            stream.close()

    run(main())


def test_a_probe_is_attached_to_the_host_itself(run: Run) -> None:
    """It wraps the work of calls from asyncio and of turns, until it is taken off."""
    seen = list[str]()

    class Probe:
        def work(self, kind: Work, *_: object) -> AbstractContextManager[Note]:
            seen.append(kind.value)
            return unprobed()

        def carry(self, operation: Any) -> Any:
            return operation

        def trace(self) -> None:
            return None

    async def main() -> None:
        async with host() as there:
            leave = there.attach(Probe())
            ada = await there.create_agent("ada")
            await ada.call_tool("schedule_list", {})
            leave()
            await ada.call_tool("schedule_list", {})

    run(main())
    assert seen.count("tool-call") == 1


def test_observers_are_called_in_the_loop_s_thread(run: Run) -> None:
    """They may wake asyncio code, and are left by calling what `subscribe` returned."""

    async def main() -> None:
        seen = asyncio.Queue[HostEvent]()
        async with host() as there:
            leave = there.subscribe(seen.put_nowait)
            await there.create_agent("ada")
            while (await seen.get()).kind is not EventKind.AGENT_STARTED:
                pass
            leave()
            await there.create_agent("eve")
            assert seen.empty()

    run(main())
