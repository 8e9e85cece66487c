"""The stream of events: order, slow readers, cancellation, and its end."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from whenidle_actors.announcer import Announcer
from whenidle_actors.errors import InvalidArgument
from whenidle_actors.observation import EventGap, EventKind, HostEvent
from whenidle_clock import VirtualClock

from .worlds import Crash, Script, hosted, settled

if TYPE_CHECKING:
    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.event_stream import EventStream
    from whenidle_actors.host import Host

NOTED = EventKind.TURN_NOTED


@pytest.fixture
def announcer() -> Announcer:
    """Return the observers of a host that does nothing by itself."""
    return Announcer(VirtualClock())


def happen(announcer: Announcer, times: int) -> None:
    """Let so much happen."""
    for _ in range(times):
        announcer.announce(NOTED, "a")


async def read(stream: EventStream, times: int) -> list[int | tuple[int, int]]:
    """Return what is read: the number of an event, first and last number of a gap."""
    return [_told(await stream.receive()) for _ in range(times)]


def _told(item: HostEvent | EventGap) -> int | tuple[int, int]:
    return (item.first, item.last) if isinstance(item, EventGap) else item.sequence


async def test_events_come_in_order_numbered_without_a_hole(announcer: Announcer) -> None:
    """Each stream gets every event from its opening on; all streams see the same numbers."""
    early = announcer.stream(10)
    happen(announcer, 2)
    late = announcer.stream(10)
    happen(announcer, 2)
    assert await read(early, 4) == [1, 2, 3, 4]
    assert await read(late, 2) == [3, 4]


async def test_a_gap_stands_in_the_place_of_what_a_slow_reader_lost(announcer: Announcer) -> None:
    """The oldest give way, one gap says how many, and then come the latest in order."""
    stream = announcer.stream(3)
    happen(announcer, 8)
    gap = await stream.receive()
    assert isinstance(gap, EventGap)
    assert (gap, gap.lost) == (EventGap(1, 5), 5)
    assert await read(stream, 3) == [6, 7, 8]
    happen(announcer, 4)
    assert await read(stream, 4) == [(9, 9), 10, 11, 12]


async def test_a_gap_grows_until_it_is_read(announcer: Announcer) -> None:
    """However long nobody reads, there is one gap, and no more memory is used."""
    stream = announcer.stream(2)
    happen(announcer, 3)
    happen(announcer, 1_000)
    assert (stream.statistics().waiting, stream.statistics().lost) == (2, 1_001)
    assert await read(stream, 3) == [(1, 1_001), 1_002, 1_003]


@given(st.lists(st.one_of(st.integers(1, 12), st.just("read"))), st.integers(1, 5))
def test_events_and_gaps_are_all_that_happened(steps: list[Any], capacity: int) -> None:
    """Whatever the reader's pace, what it reads accounts for every event once, in order; numbers agree."""

    async def reader() -> None:
        announcer = Announcer(VirtualClock())
        stream = announcer.stream(capacity)
        seen: list[int] = []
        gaps = 0
        for step in [*steps, *["read"] * (capacity + 1)]:
            if step != "read":
                happen(announcer, step)
                continue
            if stream.statistics().waiting:
                item = await stream.receive()
                gaps += item.lost if isinstance(item, EventGap) else 0
                told = range(item.first, item.last + 1) if isinstance(item, EventGap) else [item.sequence]
                seen += told
        statistics = stream.statistics()
        assert seen == list(range(1, sum(step for step in steps if step != "read") + 1))
        assert (statistics.received, statistics.lost, statistics.waiting) == (len(seen) - gaps, gaps, 0)

    trio.run(reader)


@pytest.mark.parametrize("first", ["the event", "the cancellation"])
async def test_a_receive_that_is_cancelled_loses_nothing(announcer: Announcer, first: str) -> None:
    """An event that comes at the very moment of the cancellation was received or is still there, whichever is first."""
    stream = announcer.stream(10)
    seen: list[int | tuple[int, int]] = []

    async def take() -> None:
        seen.extend(await read(stream, 1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await settled()
        if first == "the event":
            happen(announcer, 1)
        nursery.cancel_scope.cancel()
        if first == "the cancellation":
            happen(announcer, 1)
    assert seen == ([1] if first == "the event" else [])
    assert await read(stream, 1 - len(seen)) == [1][len(seen) :]
    assert stream.statistics().waiting == 0


async def test_the_same_when_events_wait(announcer: Announcer) -> None:
    """A receive that is cancelled at its checkpoint leaves what waits where it is."""
    stream = announcer.stream(2)
    happen(announcer, 5)
    for _ in range(3):
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.receive()
    assert await read(stream, 3) == [(1, 3), 4, 5]


async def test_each_event_goes_to_one_of_several_readers(announcer: Announcer) -> None:
    """Tasks that share a stream share its events."""
    stream = announcer.stream(10)
    seen: list[int] = []

    async def take() -> None:
        async for event in stream:
            assert isinstance(event, HostEvent)
            seen.append(event.sequence)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)
        await settled()
        happen(announcer, 5)
        await settled()
        announcer.end()
    assert sorted(seen) == [1, 2, 3, 4, 5, 6]


async def test_a_stream_ends_with_its_host(store: FaultyStore, script: Script) -> None:
    """What waits can still be read when the host has stopped; its last event is that it has."""
    kinds: list[EventKind] = []
    ended = trio.Event()

    async def follow(host: Host) -> None:
        async with host.events() as stream:
            async for event in stream:
                assert isinstance(event, HostEvent)
                kinds.append(event.kind)
        ended.set()

    async with trio.open_nursery() as nursery:
        async with hosted(store, script) as host:
            nursery.start_soon(follow, host)
            await settled()
            await host.create_agent("a")
        late = host.events()
    assert kinds == [
        EventKind.COMMITTED,
        EventKind.SESSION_CREATED,
        EventKind.AGENT_STARTED,
        EventKind.AGENT_DISPOSED,
        EventKind.HOST_STOPPED,
    ]
    assert ended.is_set()
    with pytest.raises(trio.EndOfChannel):
        await late.receive()


@pytest.mark.parametrize("how", ["error", "cancellation"])
async def test_it_ends_also_when_the_host_is_torn_down(store: FaultyStore, script: Script, how: str) -> None:
    """An exception or a cancellation of the host's block ends the stream all the same."""
    kinds: list[EventKind] = []
    with suppress(Crash), trio.CancelScope() as scope:
        async with hosted(store, script) as host:
            stream = host.events()
            await host.create_agent("a")
            if how == "error":
                raise Crash
            scope.cancel()
            await trio.sleep_forever()
    async for event in stream:
        assert isinstance(event, HostEvent)
        kinds.append(event.kind)
    assert kinds[-2:] == [EventKind.AGENT_DISPOSED, EventKind.HOST_STOPPED]


async def test_a_closed_stream_is_no_observer_any_more(announcer: Announcer) -> None:
    """Closing is idempotent, forgets what waits and wakes who reads; by `async with` or `with`."""
    async with announcer.stream(10) as first:
        with announcer.stream(10) as second:
            happen(announcer, 1)
            assert announcer.heard
        assert second.statistics().waiting == 0
        async with trio.open_nursery() as nursery:
            await first.receive()

            async def wait() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await first.receive()

            nursery.start_soon(wait)
            await settled()
            first.close()
    assert not announcer.heard
    announcer.end()
    with pytest.raises(trio.ClosedResourceError):
        await second.receive()


async def test_nothing_is_numbered_that_nobody_hears(announcer: Announcer) -> None:
    """Without an observer no event is made; numbers go on where they were."""
    happen(announcer, 5)
    stream = announcer.stream(10)
    happen(announcer, 1)
    assert await read(stream, 1) == [1]


def test_an_observer_of_some_kinds_is_told_of_those_alone(announcer: Announcer) -> None:
    """What no observer wants is not made, be it a commit; and one that has left wants nothing."""
    told: list[EventKind] = []
    leave = announcer.subscribe(lambda event: told.append(event.kind), [EventKind.AGENT_STARTED])
    for kind in EventKind:
        announcer.announce(kind, "a")
    assert told == [EventKind.AGENT_STARTED]
    assert not announcer.attends_commits
    with announcer.stream(10) as everything:
        assert announcer.attends_commits
        happen(announcer, 1)
        assert everything.statistics().waiting == 1
    leave()
    announcer.announce(EventKind.AGENT_STARTED, "a")
    assert told == [EventKind.AGENT_STARTED]


@pytest.mark.parametrize("capacity", [0, -1, 1.5, True, "10"])
def test_a_capacity_is_a_whole_number(announcer: Announcer, capacity: Any) -> None:
    """Anything else is refused, and no observer is left behind."""
    with pytest.raises(InvalidArgument, match="capacity"):
        announcer.stream(capacity)
    assert not announcer.heard


async def test_a_reader_that_never_reads_holds_up_nobody(store: FaultyStore, script: Script) -> None:
    """The host goes on, and the other streams lose nothing by it."""
    async with hosted(store, script) as host:
        lazy, eager = host.events(capacity=1), host.events()
        agent = await host.create_agent("a")
        for _ in range(20):
            await agent.followup("x")
            await agent.when_idle()
        waiting = eager.statistics().waiting
        assert waiting > 100
        numbers = await read(eager, waiting)
        assert numbers == list(range(1, waiting + 1))
        assert lazy.statistics().lost == waiting - 1
