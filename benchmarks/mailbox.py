"""How fast actors take messages and answer, next to what else offers a mailbox (SPEC 2.9).

The ratio of an ask to a trio checkpoint says how many asks fit into one: 0.25 is four checkpoints an ask.

Each peer has a thousand consumers that count what they get; messages are handed out in turn. *One by one*
lets the consumers run after one message each, *burst* after ten each. Every number is the best of several
runs, ours and the peers' alternating.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
import trio.testing

from whenidle_actors.actor import Actor
from whenidle_actors.scheduler import open_scheduler

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from whenidle_actors.scheduler import Scheduler

_CONSUMERS = 1000
_ROUNDS = 100
_ASKS = 10_000
_REPEATS = 5


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Measure tells in messages a second and asks in microseconds; `scale` is of their number."""
    rounds = max(10, int(_ROUNDS * scale))
    asks = max(10, int(_ASKS * scale))
    rows: list[dict[str, Any]] = []
    for pattern, burst in (("one by one", 1), ("burst", 10)):
        rates = _best(
            max,
            {
                "plain handler": partial(trio.run, _tell_actors, _Plain, rounds, burst),
                "async handler": partial(trio.run, _tell_actors, _Async, rounds, burst),
                "asyncio.Queue": partial(_run_asyncio, _put_queues, rounds, burst),
                "trio memory channel": partial(trio.run, _send_channels, rounds, burst),
            },
        )
        rows += [
            _rate_row(f"mailbox: tell 1,000 actors, {pattern}, {ours}", rates[ours], peer, rates[peer])
            for ours in ("plain handler", "async handler")
            for peer in ("asyncio.Queue", "trio memory channel")
        ]
    peers: dict[str, Callable[[], float]] = {
        "ask": partial(trio.run, _ask_actor, asks),
        "trio checkpoint": partial(trio.run, _checkpoint, asks),
        "trio memory channel": partial(trio.run, _ask_channel, asks),
        "asyncio.Queue": partial(_run_asyncio, _ask_queue, asks),
    }
    if importlib.util.find_spec("pykka") is not None:
        peers["pykka"] = partial(_ask_pykka, max(10, asks // 10))
    seconds = _best(min, peers)
    rows += [_time_row("mailbox: ask", seconds["ask"], peer, seconds[peer]) for peer in peers if peer != "ask"]
    return rows


def _run_asyncio(measure: Callable[..., Coroutine[Any, Any, float]], *args: int) -> float:
    return asyncio.run(measure(*args))


def _best(best: Callable[[list[float]], float], measures: dict[str, Callable[[], float]]) -> dict[str, float]:
    results: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(_REPEATS):
        for name, measure in measures.items():
            results[name].append(measure())
    return {name: best(numbers) for name, numbers in results.items()}


def _rate_row(name: str, ours: float, peer_name: str, peer: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours": ours,
        "peer": peer,
        "ratio": ours / peer,
        "unit": "messages/s",
        "peer_name": peer_name,
    }


def _time_row(name: str, ours: float, peer_name: str, peer: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours": ours * 1e6,
        "peer": peer * 1e6,
        "ratio": peer / ours,
        "unit": "us",
        "peer_name": peer_name,
    }


class _Countdown:
    """Calls `done` at the last of `left` messages."""

    def __init__(self, left: int, done: Callable[[], object]) -> None:
        self.left = left
        self.done = done

    def count(self) -> None:
        self.left -= 1
        if not self.left:
            self.done()


class _Plain(Actor):
    __slots__ = ("countdown",)

    def __init__(self, name: str, scheduler: Scheduler, countdown: _Countdown) -> None:
        super().__init__(name, scheduler)
        self.countdown = countdown

    def receive(self, message: Any) -> Any:
        self.countdown.count()
        return message


class _Async(_Plain):
    __slots__ = ()

    async def receive(self, message: Any) -> Any:
        self.countdown.count()
        return message


async def _hand_out(
    puts: list[Callable[[int], None]],
    rounds: int,
    burst: int,
    let_run: Callable[[], Awaitable[object]],
    done: Callable[[], Awaitable[object]],
) -> float:
    """Return messages a second."""
    began = time.perf_counter()
    for number in range(rounds):
        for put in puts:
            put(number)
        if number % burst == burst - 1:
            await let_run()
    await done()
    return rounds * len(puts) / (time.perf_counter() - began)


async def _tell_actors(kind: type[_Plain], rounds: int, burst: int) -> float:
    done = trio.Event()
    countdown = _Countdown(_CONSUMERS * rounds, done.set)
    async with open_scheduler() as scheduler:
        actors = [kind(str(number), scheduler, countdown) for number in range(_CONSUMERS)]
        for actor in actors:
            actor.start()
        await trio.testing.wait_all_tasks_blocked()
        tells: list[Callable[[int], None]] = [actor.tell for actor in actors]
        return await _hand_out(tells, rounds, burst, trio.lowlevel.checkpoint, done.wait)


async def _put_queues(rounds: int, burst: int) -> float:
    done = asyncio.Event()
    countdown = _Countdown(_CONSUMERS * rounds, done.set)
    queues: list[asyncio.Queue[int]] = [asyncio.Queue() for _ in range(_CONSUMERS)]

    async def consume(queue: asyncio.Queue[int]) -> None:
        while True:
            await queue.get()
            countdown.count()

    tasks = [asyncio.create_task(consume(queue)) for queue in queues]
    await asyncio.sleep(0)
    puts: list[Callable[[int], None]] = [queue.put_nowait for queue in queues]
    rate = await _hand_out(puts, rounds, burst, lambda: asyncio.sleep(0), done.wait)
    for task in tasks:
        task.cancel()
    return rate


async def _send_channels(rounds: int, burst: int) -> float:
    done = trio.Event()
    countdown = _Countdown(_CONSUMERS * rounds, done.set)
    puts: list[Callable[[int], None]] = []

    async def consume(receiver: trio.MemoryReceiveChannel[int]) -> None:
        async for _ in receiver:
            countdown.count()

    async with trio.open_nursery() as nursery:
        for _ in range(_CONSUMERS):
            sender, receiver = trio.open_memory_channel[int](float("inf"))
            puts.append(sender.send_nowait)
            nursery.start_soon(consume, receiver)
        await trio.testing.wait_all_tasks_blocked()
        rate = await _hand_out(puts, rounds, burst, trio.lowlevel.checkpoint, done.wait)
        nursery.cancel_scope.cancel()
    return rate


async def _each(count: int, work: Callable[[], Awaitable[object]]) -> float:
    """Return seconds for one `work()`."""
    await work()
    began = time.perf_counter()
    for _ in range(count):
        await work()
    return (time.perf_counter() - began) / count


async def _ask_actor(count: int) -> float:
    async with open_scheduler() as scheduler:
        actor = _Plain("a", scheduler, _Countdown(0, int))
        return await _each(count, lambda: actor.ask(1))


async def _checkpoint(count: int) -> float:
    return await _each(count, trio.lowlevel.checkpoint)


async def _ask_channel(count: int) -> float:
    """Ask a task over a channel, with a channel for each reply."""
    requests, inbox = trio.open_memory_channel["trio.MemorySendChannel[int]"](float("inf"))

    async def answer() -> None:
        async for reply in inbox:
            reply.send_nowait(1)

    async def ask() -> int:
        reply, replies = trio.open_memory_channel[int](1)
        requests.send_nowait(reply)
        return await replies.receive()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        seconds = await _each(count, ask)
        nursery.cancel_scope.cancel()
    return seconds


async def _ask_queue(count: int) -> float:
    """Ask a task over a queue, with a future for each reply."""
    queue: asyncio.Queue[asyncio.Future[int]] = asyncio.Queue()

    async def answer() -> None:
        while True:
            (await queue.get()).set_result(1)

    async def ask() -> int:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        queue.put_nowait(future)
        return await future

    task = asyncio.create_task(answer())
    seconds = await _each(count, ask)
    task.cancel()
    return seconds


def _ask_pykka(count: int) -> float:
    pykka = importlib.import_module("pykka")

    class Answers(pykka.ThreadingActor):  # type: ignore[misc, name-defined]  # imported by name, so that it may be missing
        def on_receive(self, message: Any) -> Any:
            return message

    reference = Answers.start()
    try:
        reference.ask(1)
        began = time.perf_counter()
        for _ in range(count):
            reference.ask(1)
        return (time.perf_counter() - began) / count
    finally:
        reference.stop()


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']:60} {row['ours']:12,.2f} {row['peer']:12,.2f} {row['ratio']:6.2f} {row['peer_name']}")
