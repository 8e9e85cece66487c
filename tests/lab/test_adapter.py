"""The one file that touches what trio does not offer."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from whenidle_clock import VirtualClock
from whenidle_lab import adapter
from whenidle_lab.adapter import AdapterMisfit
from whenidle_lab.machine import START

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

RUN: Any = importlib.import_module("trio._core._run")


@pytest.fixture(autouse=True)
def _unknown() -> Generator[None]:
    """Nobody knows whether the installed trio fits."""
    adapter.check_fit.cache_clear()
    yield
    adapter.check_fit.cache_clear()


def _misfit() -> str:
    """Try to control a run, and return why that is refused."""
    with pytest.raises(AdapterMisfit) as raised, adapter.controlled(lambda _: None):
        pytest.fail("it was not refused")
    text = str(raised.value)
    assert text.startswith(f"the lab cannot control the tasks of trio {trio.__version__}; install trio 0.32 to 0.35: ")
    return text


def test_the_installed_trio_fits() -> None:
    """Tasks run in the order they are told to, and trio is as it was afterwards."""
    before = (RUN._r, RUN._ALLOW_DETERMINISTIC_SCHEDULING)
    with adapter.controlled(lambda _: None):
        trio.run(trio.lowlevel.checkpoint)
    assert (RUN._r, RUN._ALLOW_DETERMINISTIC_SCHEDULING) == before


@pytest.mark.parametrize("name", ["_r", "_ALLOW_DETERMINISTIC_SCHEDULING"])
def test_a_trio_that_lacks_a_name_is_refused_by_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which trio is installed, which are known to fit, and what is missing."""
    monkeypatch.delattr(RUN, name)
    assert _misfit().endswith(f"trio._core._run has no {name}")


def test_a_trio_that_is_built_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module may have gone as a whole."""

    def gone(name: str) -> ModuleType:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", gone)
    assert _misfit().endswith("No module named 'trio._core._run'")


def test_a_trio_that_does_not_ask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names may be there and mean nothing any more: four tasks are run to see."""
    monkeypatch.setattr(adapter._Orderer, "shuffle", lambda *_: None)
    assert _misfit().endswith("it ran four tasks in the order [3, 2, 1, 0] instead of [2, 0, 3, 1]")


def test_a_trio_whose_shields_are_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be noticed in the first crash of a run."""

    def unknown(_: trio.lowlevel.Task) -> None:
        raise AttributeError("'Task' object has no attribute '_cancel_status'")

    monkeypatch.setattr(adapter, "unshield", unknown)
    assert _misfit().endswith("has no attribute '_cancel_status'")


def test_a_trio_whose_shields_stay_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies must not be kept alive by a shield."""
    monkeypatch.setattr(adapter, "unshield", lambda _: None)
    assert _misfit().endswith("a task whose shields were taken away was not cancelled")


def test_a_trio_that_hides_who_waits_for_all_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be noticed when the lab's time is to move for the first time."""
    monkeypatch.setattr(adapter, "_CONTEXT", "gone")
    assert _misfit().endswith("module 'trio._core._run' has no attribute 'gone'")


def test_a_trio_that_keeps_who_waits_for_all_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time would run away from a task that waits for all others to be blocked."""
    monkeypatch.setattr(adapter, "is_settled", lambda: True)
    assert _misfit().endswith("it was not seen that a task waits for all tasks to be blocked")


def test_a_trio_in_which_all_always_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time would never move."""
    monkeypatch.setattr(adapter, "is_settled", lambda: False)
    assert _misfit().endswith("it was not seen that a task waits for all tasks to be blocked")


@pytest.mark.parametrize("cushion", [0.0, 0.002])
def test_time_of_the_lab_waits_for_who_waits_for_all(cushion: float) -> None:
    """As under any virtual clock, `wait_all_tasks_blocked` returns before time moves."""
    clock = adapter.LabClock(START)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 3600)
            await wait_all_tasks_blocked(cushion)
            assert trio.current_time() == 0.0

    trio.run(main, clock=clock)
    assert clock.monotonic() == 3600.0


def test_time_of_the_lab_stands_while_a_thread_works() -> None:
    """A deadline does not overtake what is in flight outside trio."""

    async def main() -> None:
        released = threading.Event()

        async def work() -> None:
            await trio.to_thread.run_sync(released.wait)

        with trio.fail_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work)
                await wait_all_tasks_blocked(0.002)
                released.set()
        assert trio.current_time() == 0.0

    trio.run(main, clock=adapter.LabClock(START))


def test_time_of_the_lab_stands_when_nothing_waits_for_it() -> None:
    """Without a deadline there is nowhere to go; a thread can still wake the run."""

    async def main() -> None:
        token, woken = trio.lowlevel.current_trio_token(), trio.Event()
        waker = threading.Thread(target=token.run_sync_soon, args=[woken.set])
        waker.start()
        await woken.wait()
        waker.join()
        assert trio.current_time() == 0.0

    trio.run(main, clock=adapter.LabClock(START))


@given(st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=8))
def test_time_of_the_lab_moves_as_that_of_any_virtual_clock(waits: list[float]) -> None:
    """Whoever sleeps wakes at the same instants, in the same order, under both."""

    def told(clock: VirtualClock) -> list[tuple[int, float, int]]:
        log: list[tuple[int, float, int]] = []

        async def sleep(number: int, seconds: float) -> None:
            await trio.sleep(seconds)
            await trio.sleep(seconds / 3)
            log.append((number, trio.current_time(), clock.monotonic_ns))

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number, seconds in enumerate(waits):
                    nursery.start_soon(sleep, number, seconds)

        with adapter.controlled(lambda _: None):
            trio.run(main, clock=clock)
        return log

    assert told(adapter.LabClock(START)) == told(VirtualClock(START, autojump=True))
