"""Calls from other threads, into asyncio and into trio: one portal for both."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

import pytest
import trio

import whenidle
import whenidle.portal
from whenidle import MemoryStore, aio
from whenidle.portal import Portal, PortalClosed, WrongThread

from .loops import Run, no_work

Body: TypeAlias = Callable[["Side"], Awaitable[None]]


class Side:
    """A host with a portal, and what its loop calls the same things as the other does."""

    def __init__(self, host: Any, portal: Portal, *, is_trio: bool) -> None:
        self.host = host
        self.portal = portal
        self.gate: Any = trio.Event() if is_trio else asyncio.Event()
        self.in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] = (
            trio.to_thread.run_sync if is_trio else asyncio.to_thread
        )


async def on_asyncio(body: Body) -> None:
    """Run a body beside both on asyncio."""
    async with aio.open_host(store=MemoryStore(), turn=no_work) as host, aio.open_portal() as portal:
        await body(Side(host, portal, is_trio=False))


async def trio_turn(_: whenidle.Turn) -> None:
    """Take a turn and do nothing."""


async def on_trio(body: Body) -> None:
    """Run a body beside both on trio."""
    async with whenidle.open_host(store=MemoryStore(), turn=trio_turn) as host, whenidle.open_portal() as portal:
        await body(Side(host, portal, is_trio=True))


@pytest.fixture(params=["asyncio", "trio"])
def within(request: pytest.FixtureRequest) -> Callable[[Body], None]:
    """Return what runs a body on each kind of host."""

    def run_body(body: Body) -> None:
        if request.param == "trio":
            trio.run(on_trio, body)
        else:
            asyncio.run(on_asyncio(body))

    return run_body


def test_a_thread_calls_in(within: Callable[[Body], None]) -> None:
    """Methods of host and agent, plain functions too; answers and exceptions come back."""

    async def body(side: Side) -> None:
        def work() -> str:
            agent = side.portal.call(side.host.create_agent, "ada")
            side.portal.call(agent.followup, "x")
            side.portal.call(agent.when_idle)
            assert side.portal.call(side.host.statistics).agents == 1
            with pytest.raises(whenidle.errors.UnknownSession):
                side.portal.call(side.host.agent, "nobody")
            return str(agent.id)

        assert await side.in_thread(work) == "ada"

    within(body)


def test_threads_call_side_by_side(within: Callable[[Body], None]) -> None:
    """One that waits keeps no other from being answered; context variables go with the call."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def body(side: Side) -> None:
        async def look() -> str:
            side.gate.set()
            return variable.get()

        def work() -> str:
            variable.set("the thread's")
            waiting = threading.Thread(target=side.portal.call, args=(side.gate.wait,))
            waiting.start()
            seen = side.portal.call(look)
            waiting.join()
            return seen

        assert await side.in_thread(work) == "the thread's"

    within(body)


def test_closing_ends_calls_that_are_under_way(within: Callable[[Body], None]) -> None:
    """Each is cancelled in the loop and raises `PortalClosed` in its thread."""
    raised = list[BaseException]()
    threads = list[threading.Thread]()

    async def body(side: Side) -> None:
        async def forever() -> None:
            began.set()
            await side.gate.wait()

        def work() -> None:
            try:
                side.portal.call(forever)
            except PortalClosed as error:
                raised.append(error)

        began = threading.Event()
        threads.append(threading.Thread(target=work))
        threads[0].start()
        await side.in_thread(began.wait)

    within(body)
    threads[0].join()
    assert "before the call was answered" in str(raised[0])


def test_a_call_that_is_closed_before_its_first_step_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a task that never ran, and its thread must not wait for ever."""
    raised = list[BaseException]()
    asked = threading.Event()

    def work(portal: Portal) -> None:
        try:
            portal.call(asyncio.sleep, 0)
        except PortalClosed as error:
            raised.append(error)

    async def main() -> threading.Thread:
        loop = asyncio.get_running_loop()
        enter = loop.call_soon_threadsafe

        def entered(*arguments: Any) -> None:
            enter(*arguments)
            asked.set()

        monkeypatch.setattr(loop, "call_soon_threadsafe", entered)
        async with aio.open_portal() as portal:
            thread = threading.Thread(target=work, args=(portal,), daemon=True)
            thread.start()
            asked.wait()
            await asyncio.sleep(0)  # one pass, in which the call gets its task
        return thread

    asyncio.run(main()).join(5)
    assert "before the call was answered" in str(raised[0])


def test_the_loop_s_own_thread_is_refused(within: Callable[[Body], None]) -> None:
    """It would wait for itself."""

    async def body(side: Side) -> None:
        with pytest.raises(WrongThread, match="call the function directly"):
            side.portal.call(side.gate.wait)

    within(body)


def test_a_closed_portal_says_so(within: Callable[[Body], None]) -> None:
    """Calls that come too late fail at once."""
    left = list[Portal]()

    async def body(side: Side) -> None:
        left.append(side.portal)

    within(body)
    with pytest.raises(WrongThread):
        left[0].call(int)
    raised = list[BaseException]()

    def work() -> None:
        try:
            left[0].call(int)
        except PortalClosed as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "this portal is closed" in str(raised[0])


def test_whatever_is_raised_is_the_caller_s(within: Callable[[Body], None]) -> None:
    """A `SystemExit` in a call ends no loop."""

    async def body(side: Side) -> None:
        async def leave() -> None:
            raise SystemExit(3)

        def work() -> None:
            with pytest.raises(SystemExit):
                side.portal.call(leave)

        await side.in_thread(work)

    within(body)


def test_an_interrupt_is_the_program_s_too(within: Callable[[Body], None]) -> None:
    """Ctrl-C that finds the loop in a call ends the program as it does at any other time."""
    raised = list[BaseException]()
    threads = list[threading.Thread]()

    def interrupted() -> None:
        raise KeyboardInterrupt

    async def body(side: Side) -> None:
        def work() -> None:
            try:
                side.portal.call(interrupted)
            except KeyboardInterrupt as error:
                raised.append(error)

        threads.append(threading.Thread(target=work))
        threads[0].start()
        await side.gate.wait()

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as ended:
        within(body)
    threads[0].join()
    assert len(raised) == 1
    assert BaseExceptionGroup("", [ended.value]).subgroup(KeyboardInterrupt) is not None


class Entrance:
    """The loop's side of a portal, taken by hand: what it is asked to do is done when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], object]] = []
        self.started: list[Any] = []
        self.portal = Portal(self.asked.append, self.started.append)

    def call_in_thread(self) -> tuple[threading.Thread, list[BaseException]]:
        """Make a call that nobody answers, and return its thread and what it raised."""
        raised = list[BaseException]()

        def work() -> None:
            try:
                self.portal.call(int)
            except BaseException as error:  # noqa: BLE001 - it is looked at
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        while not self.asked:
            pass
        return thread, raised


def test_a_call_that_has_not_begun_fails_when_the_portal_closes() -> None:
    """A loop that stops before it comes to a call leaves no thread waiting, and begins nothing afterwards."""
    entrance = Entrance()
    thread, raised = entrance.call_in_thread()
    entrance.portal.close()
    thread.join()
    assert [type(error) for error in raised] == [PortalClosed]
    entrance.asked[0]()
    assert entrance.started == []


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupted_wait_cancels_the_call(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in a thread that waits withdraws the call, or has the loop cancel it."""
    entrance = Entrance()
    cancelled = list[str]()

    class Interrupted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:  # noqa: ARG002 - as the other's
            if begun:
                entrance.asked.pop()()
                entrance.started[0].cancel = lambda: cancelled.append("call")
            raise KeyboardInterrupt

    monkeypatch.setattr(whenidle.portal, "Future", Interrupted)
    raised = list[BaseException]()

    def work() -> None:
        try:
            entrance.portal.call(int)
        except KeyboardInterrupt as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(raised) == 1
    entrance.asked[0]()
    assert cancelled == (["call"] if begun else [])
    assert len(entrance.started) == begun


def test_leaving_the_block_waits_for_the_calls(run: Run) -> None:
    """On asyncio their clean-up has run when the block is left, cancelled or not."""
    steps = list[str]()

    async def main() -> None:
        began = asyncio.Event()

        async def work() -> None:
            try:
                began.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                steps.append("unwound")

        async def serve() -> None:
            async with aio.open_portal() as portal:

                def call() -> None:
                    with pytest.raises(PortalClosed):
                        portal.call(work)

                thread.append(threading.Thread(target=call))
                thread[0].start()
                await began.wait()

        thread = list[threading.Thread]()
        serving = asyncio.create_task(serve())
        await began.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        thread[0].join()

    run(main())
    assert steps == ["unwound"]


def test_a_call_that_ends_as_cancelled_by_itself_raises_that(run: Run) -> None:
    """A stray `CancelledError` is the call's own."""

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        async with aio.open_portal() as portal:

            def call() -> None:
                with pytest.raises(asyncio.CancelledError):
                    portal.call(cancelled)

            await asyncio.to_thread(call)

    run(main())
