"""The fixtures, as pytest finds them when `whenidle` is installed.

Each run of pytest imports this module, also where no test is about `whenidle`. Whatever else there is of that, and
trio, is imported by the fixtures that are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from whenidle.testing.sim import Sim
    from whenidle_clock import VirtualClock


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "whenidle(start=..., **options): when a simulation begins, and arguments of open_host for `host`"
    )


@pytest.fixture
def virtual_clock(request: pytest.FixtureRequest) -> VirtualClock:
    """A `VirtualClock` of the test's own; with pytest-trio, the clock that the test runs on.

    `sim` is a virtual clock already: ask for one of them.
    """
    from whenidle_clock import VirtualClock  # noqa: PLC0415 - see above

    if "sim" in request.fixturenames:
        pytest.fail("sim is a virtual clock itself; ask for sim alone", pytrace=False)
    return VirtualClock(**_marked(request, "start"))


@pytest.fixture
def sim(request: pytest.FixtureRequest) -> Sim:
    """A `whenidle.testing.Sim` of the test's own; with pytest-trio, the clock that the test runs on."""
    from whenidle.testing.sim import Sim  # noqa: PLC0415 - the same

    return Sim(**_marked(request, "start"))


@pytest.fixture
async def host(request: pytest.FixtureRequest, sim: Sim) -> AsyncGenerator[Any]:
    """A host that runs as long as the test, in trio or asyncio, whichever runs the test; ask for `sim` beside it.

    `@pytest.mark.whenidle(turn=..., suites=[...])` gives it arguments of `open_host`.
    """
    import trio  # noqa: PLC0415 - the same

    # With a store that is given it cannot crash: the block that would be left is not one of the test.
    options: dict[str, Any] = {"store": sim.store, **_marked(request)}
    options.pop("start", None)
    if trio.lowlevel.in_trio_task():
        if trio.lowlevel.current_clock() is not sim:
            pytest.fail("the test does not run on the clock of its host: ask for `sim` beside `host`", pytrace=False)
        async with sim.host(**options) as opened:
            yield opened
    else:
        async with sim.aio_host(**options) as opened:
            yield opened


def _marked(request: pytest.FixtureRequest, *names: str) -> dict[str, Any]:
    """Return the arguments of the test's marker, or of them those of these names."""
    marker = request.node.get_closest_marker("whenidle")
    given: dict[str, Any] = {} if marker is None else marker.kwargs
    return {name: value for name, value in given.items() if not names or name in names}
