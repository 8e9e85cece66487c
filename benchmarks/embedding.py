"""What a host costs an asyncio program: a call from asyncio into trio, and a host that has nothing to do (SPEC 7.1).

A call is made as `whenidle.aio` makes it, and beside it in the cheapest ways there are to have trio run
something for asyncio: bare guest mode, and a trio run in a thread of its own, both without regard for cancellation,
exceptions or context variables; and the documented one, with a worker thread in between. The tool call is
`schedule_list` of ten reminders on a store in memory.

An idle host has a store on disk and one reminder a day away. Wake-ups are voluntary context switches of all threads
of a process that does nothing else; the peer is the same host on trio alone.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import crossings, idle_host
from benchmarks.harness.hosts import no_work
from benchmarks.harness.rows import Row, cost_row
from whenidle import MemoryStore, aio, open_host

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from whenidle import Agent

_CALLS: Final = 300
_ROUNDS: Final = 30
"""Many and short: some of them are left alone by whatever else the machine does."""
_REMINDERS: Final = 10
_IDLE_SECONDS: Final = 20.0
_DAY: Final = 86_400

_PEERS: Final[dict[str, Callable[[], AbstractAsyncContextManager[crossings.Cross]]]] = {
    "trio in guest mode, bare": crossings.guest_mode,
    "trio in a thread, bare": crossings.own_thread,
    "asyncio.to_thread, trio.from_thread": crossings.worker_threads,
}
_OURS: Final = "whenidle.aio"


def run(scale: float = 1.0) -> list[Row]:
    """Measure calls in microseconds, and idle hosts in wake-ups and milliseconds of CPU a minute.

    `scale` multiplies how many calls are timed, and for how long a host is watched. The best of several rounds
    counts, ours and the peers' in turn: other work on the machine can only slow one down.
    """
    calls = max(3, round(_CALLS * scale))
    rows = [row for loop, factory in _loops().items() for row in _call_rows(loop, factory, calls)]
    if Path("/proc/self/task").exists():
        rows += _idle_rows(_IDLE_SECONDS * scale)
    return rows


def _loops() -> dict[str, Any]:
    """Return what makes each kind of event loop that is installed."""
    loops: dict[str, Any] = {"asyncio": asyncio.new_event_loop}
    if importlib.util.find_spec("uvloop"):
        import uvloop  # noqa: PLC0415 - it may be missing

        loops["uvloop"] = uvloop.new_event_loop
    return loops


def _call_rows(loop: str, factory: Any, calls: int) -> list[Row]:
    measures: dict[str, Callable[[int], Awaitable[tuple[float, float]]]] = {_OURS: _our_calls}
    measures |= {name: partial(_peer_calls, peer) for name, peer in _PEERS.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
    for _ in range(_ROUNDS):
        for name, measure in measures.items():
            with asyncio.Runner(loop_factory=factory) as runner:
                found[name].append(runner.run(_awaited(measure(calls))))
    best = {name: [min(column) * 1e6 for column in zip(*rounds, strict=True)] for name, rounds in found.items()}
    return [
        cost_row(f"embedding: {what}, {loop}", best[_OURS][column], best[peer][column], "us", peer)
        for column, what in enumerate(("nothing", "schedule_list"))
        for peer in _PEERS
    ]


async def _awaited(measure: Awaitable[tuple[float, float]]) -> tuple[float, float]:
    return await measure


async def _nothing() -> None:
    """Do nothing, in trio."""


async def _our_calls(calls: int) -> tuple[float, float]:
    """Return seconds for a call that does nothing, and for a tool call."""
    async with aio.open_host(store=MemoryStore(), turn=aio.TrioTurn(no_work)) as host:
        agent = await host.create_agent()
        await _remind(agent.call_tool)
        nothing = await _each(calls, partial(aio.run_trio, _nothing))
        return nothing, await _each(calls, partial(agent.call_tool, "schedule_list", {}))


async def _peer_calls(
    peer: Callable[[], AbstractAsyncContextManager[crossings.Cross]], calls: int
) -> tuple[float, float]:
    """Return the same, by way of a peer."""
    async with peer() as cross:
        opening = open_host(store=MemoryStore(), turn=no_work)
        lasts = _Lasting(opening)
        agent: Agent = await cross(lasts.begin)
        try:
            await cross(partial(_remind, agent.call_tool))
            nothing = await _each(calls, partial(cross, _nothing))
            return nothing, await _each(calls, partial(cross, partial(agent.call_tool, "schedule_list", {})))
        finally:
            await cross(lasts.end)


class _Lasting:
    """A host in a trio task of its own, which opens and closes it."""

    def __init__(self, opening: Any) -> None:
        self._opening = opening

    async def begin(self) -> Agent:
        """Open it and return an agent."""
        import trio  # noqa: PLC0415 - nothing else here is trio's

        self._agent: list[Agent] = []
        self._stop, self._opened, self._closed = trio.Event(), trio.Event(), trio.Event()
        trio.lowlevel.spawn_system_task(self._live)
        await self._opened.wait()
        return self._agent[0]

    async def end(self) -> None:
        """Close it."""
        self._stop.set()
        await self._closed.wait()

    async def _live(self) -> None:
        async with self._opening as host:
            self._agent.append(await host.create_agent())
            self._opened.set()
            await self._stop.wait()
        self._closed.set()


async def _remind(call_tool: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
    for number in range(_REMINDERS):
        await call_tool("schedule_create", {"prompt": f"Look at parcel {number}.", "after_seconds": _DAY})


async def _each(calls: int, call: Callable[[], Awaitable[Any]]) -> float:
    """Return seconds for one call, after some that warm up."""
    for _ in range(calls // 10):
        await call()
    began = time.perf_counter()
    for _ in range(calls):
        await call()
    return (time.perf_counter() - began) / calls


def _idle_rows(seconds: float) -> list[Row]:
    kinds = [*_loops(), "trio"]
    found = {kind: idle_host.measure(kind, seconds) for kind in kinds}
    return [
        # A moment without a single wake-up is not nothing, but less than one.
        cost_row(
            f"embedding: idle host, {kind}, {what}", found[kind][what] or 1, found["trio"][what] or 1, unit, "trio"
        )
        for what, unit in (("wake-ups", "1/min"), ("milliseconds", "ms/min"))
        for kind in kinds
        if kind != "trio"
    ]
