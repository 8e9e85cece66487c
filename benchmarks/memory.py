"""What an idle agent weighs, at a million of them, and what an idle actor weighs (SPEC 2.8).

An agent is made by `Host.create_agent` on a store that keeps nothing, so that what stays in memory is the
agent's own: its session header and id, its fold, its place in the registry. It is weighed twice. By the
process: growth of its resident set, in a process of its own, which is what a machine has to have. By the
interpreter: `tracemalloc`, which leaves out what the allocator rounds up. Agents that have run a turn are
weighed when they are idle again. The peer is an idle trio task that waits on a memory channel.
"""

from __future__ import annotations

import gc
import multiprocessing
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from resource import getpagesize
from typing import TYPE_CHECKING, Any, Final

import trio
import trio.testing

from benchmarks.harness.hosts import ForgetfulStore, no_work
from benchmarks.harness.rows import Row, cost_row
from whenidle_actors.actor import Actor
from whenidle_actors.composition import open_host
from whenidle_actors.scheduler import open_scheduler

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_AGENTS: Final = 1_000_000
_TRACED: Final = 100_000
_TURNS: Final = 30_000
_TRACED_TURNS: Final = 10_000
_ACTORS: Final = 100_000
_TASKS: Final = 5_000

_STATM: Final = Path("/proc/self/statm")


def run(scale: float = 1.0) -> list[Row]:
    """Measure bytes each; `scale` multiplies a million agents, and the smaller numbers of the other rows."""

    def count(full: int) -> int:
        return max(100, round(full * scale))

    peer = trio.run(_idle_tasks, count(_TASKS))
    rows: list[Row] = []
    if _STATM.exists():
        agents, turned = count(_AGENTS), count(_TURNS)
        rows += [
            _row(f"memory: idle agent, resident, {agents:,} agents", _in_a_new_process(agents, turns=False), peer),
            _row(f"memory: idle agent after a turn, resident, {turned:,}", _in_a_new_process(turned, turns=True), peer),
        ]
    agents, turned = count(_TRACED), count(_TRACED_TURNS)
    return [
        *rows,
        _row(f"memory: idle agent, traced, {agents:,} agents", _weigh_agents(agents, _traced, turns=False), peer),
        _row(f"memory: idle agent after a turn, traced, {turned:,}", _weigh_agents(turned, _traced, turns=True), peer),
        _row("memory: bare actor, traced", trio.run(_idle_actors, count(_ACTORS)), peer),
    ]


def _row(name: str, ours: float, peer: float) -> Row:
    return cost_row(name, ours, peer, "bytes", "trio task with a memory channel")


def _in_a_new_process(count: int, *, turns: bool) -> float:
    # A process that has worked before has free memory, into which agents would vanish.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_weigh_agents, count, _resident, turns=turns).result()


def _weigh_agents(count: int, weigh: Callable[[], int], *, turns: bool) -> float:
    return trio.run(partial(_idle_agents, count, weigh, turns=turns))


def _resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(_STATM.read_text(encoding="ascii").split()[1]) * getpagesize()


def _traced() -> int:
    """Return the bytes allocated since this was first called; see `_growth`."""
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


async def _growth(weigh: Callable[[], int], count: int, make: Callable[[], Awaitable[object]]) -> float:
    """Return the bytes that stay for each of `count` things that `make` makes."""
    gc.collect()
    try:
        before = weigh()
        kept = await make()
        gc.collect()
        after = weigh()
        del kept
    finally:
        tracemalloc.stop()
    return (after - before) / count


async def _idle_agents(count: int, weigh: Callable[[], int], *, turns: bool) -> float:
    """Weigh agents that are idle: never woken, or with a turn behind them."""
    async with open_host(store=ForgetfulStore(), turn=no_work) as host:

        async def make(number: int = count) -> None:
            for _ in range(number):
                agent = await host.create_agent()
                if turns:
                    await agent.followup("Has the parcel arrived?")
                    await agent.when_idle()
            await trio.testing.wait_all_tasks_blocked()

        await make(10)
        return await _growth(weigh, count, make)


class _Idle(Actor):
    __slots__ = ()

    def receive(self, message: Any) -> None:
        pass


async def _idle_actors(count: int) -> float:
    """Weigh actors that have all handled a message and are idle again, without names and the list of them."""
    names = [str(number) for number in range(count)]
    kept: list[_Idle | None] = [None] * count

    async def make() -> None:
        for number, name in enumerate(names):
            actor = kept[number] = _Idle(name, scheduler)
            actor.tell(None)
        await trio.testing.wait_all_tasks_blocked()

    async with open_scheduler() as scheduler:
        await _Idle("warm-up", scheduler).ask(None)
        return await _growth(_traced, count, make)


async def _idle_tasks(count: int) -> float:
    """Weigh tasks that wait for the first message of a channel of their own."""
    senders: list[trio.MemorySendChannel[Any] | None] = [None] * count

    async def consume(receiver: trio.MemoryReceiveChannel[Any]) -> None:
        async for _ in receiver:
            pass

    async def make() -> None:
        for number in range(count):
            senders[number], receiver = trio.open_memory_channel[Any](0)
            nursery.start_soon(consume, receiver)
        await trio.testing.wait_all_tasks_blocked()

    async with trio.open_nursery() as nursery:
        weight = await _growth(_traced, count, make)
        nursery.cancel_scope.cancel()
    return weight
