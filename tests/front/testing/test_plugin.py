"""The fixtures, in test sessions of their own."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TRIO = ("-p", "trio", "-p", "no:randomly", "-W", "error")

BOTH = """
    import pytest
    from datetime import UTC, datetime, timedelta
    from whenidle.testing import Sim

    async def use(sim, host):
        agent = await host.create_agent("ada")
        await agent.call_tool("schedule_create", {"prompt": "tea", "after_seconds": 60})
        await sim.advance(timedelta(minutes=1))
        assert [delivery.session_id for delivery in sim.deliveries()] == ["ada"]
"""


def test_trio_tests_get_a_host_on_virtual_time(pytester: pytest.Pytester) -> None:
    """With pytest-trio, `sim` is the clock of the test and `host` runs on it."""
    pytester.makeini("[pytest]\ntrio_mode = true")
    pytester.makepyfile(
        BOTH
        + """
    async def test_trio(sim, host):
        await use(sim, host)

    @pytest.mark.whenidle(start=datetime(2030, 1, 1, tzinfo=UTC), max_concurrent_turns=1)
    async def test_marked(sim, host):
        assert sim.now().year == 2030
        assert host.statistics().turn_slots == 1
        await use(sim, host)

    @pytest.mark.whenidle(start=datetime(2031, 1, 1, tzinfo=UTC))
    async def test_clock(virtual_clock):
        before = virtual_clock.now()
        await virtual_clock.advance(timedelta(days=365))
        assert before.year == 2031
        assert virtual_clock.now() - before == timedelta(days=365)
    """
    )
    pytester.runpytest_subprocess(*TRIO).assert_outcomes(passed=3)


def test_asyncio_tests_get_a_host_on_virtual_time(pytester: pytest.Pytester) -> None:
    """With a plugin that runs asyncio tests, the same fixtures give the same host for asyncio."""
    pytester.makepyfile(
        BOTH
        + """
    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.mark.anyio
    async def test_asyncio(sim, host):
        from whenidle import aio

        assert isinstance(host, aio.Host)
        await use(sim, host)
    """
    )
    pytester.runpytest_subprocess("-p", "no:randomly", "-W", "error").assert_outcomes(passed=1)


def test_mistakes_are_told(pytester: pytest.Pytester) -> None:
    """Two clocks in one test, a host without its clock, and a crash without a block fail with what to write instead."""
    pytester.makeini("[pytest]\ntrio_mode = true")
    pytester.makepyfile(
        """
    async def test_two_clocks(sim, virtual_clock): ...

    async def test_no_clock(host): ...

    async def test_crash(sim, host):
        await sim.crash()
    """
    )
    result = pytester.runpytest_subprocess(*TRIO)
    result.assert_outcomes(errors=1, failed=2)
    result.stdout.fnmatch_lines(["*no host to crash: do it inside `async with sim.host()`*"])
    result.stdout.fnmatch_lines(["*sim is a virtual clock itself; ask for sim alone*"])
    result.stdout.fnmatch_lines(["*ask for `sim` beside `host`*"])


def test_the_fixtures_are_listed(pytester: pytest.Pytester) -> None:
    """`pytest --fixtures` and `--markers` say what there is."""
    fixtures = pytester.runpytest_subprocess("--fixtures")
    fixtures.stdout.fnmatch_lines(["virtual_clock -- *", "sim -- *", "host -- *"])
    pytester.runpytest_subprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.whenidle*"])


def test_a_project_that_does_not_use_it_does_not_wait_for_it() -> None:
    """What pytest imports at its start is the plugin alone, in its packages: no trio, no runtime."""
    script = """
import sys
import pytest
before = set(sys.modules)
import whenidle.testing.plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["whenidle", "whenidle.testing", "whenidle.testing.plugin"]


def test_what_the_package_lists_is_there() -> None:
    """Whether it was imported before or not."""
    script = "import whenidle.testing as t; print(sorted(set(t.__all__) - set(dir(t)))); from whenidle.testing import *"
    command = [sys.executable, "-c", f"{script}; print(Sim.__module__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "whenidle.testing.sim"]
