"""The one file that touches what trio does not offer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest
import trio

from whenidle_lab import adapter
from whenidle_lab.adapter import AdapterMisfit

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
