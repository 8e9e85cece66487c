"""Metrics: what is counted, measured and read, and by which attributes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from tests.actors.faulty_store import Fault
from tests.actors.runtime.worlds import hosted, settled, sleeping
from whenidle import Caller, CreateTask, EveryRule, Reminders, Supervision, TargetKind, Tasks
from whenidle.telemetry.metrics import Meters

if TYPE_CHECKING:
    import pytest

    from tests.actors.faulty_store import FaultyStore
    from tests.actors.runtime.worlds import Script

    from .seen import Seen


async def test_deliveries_are_counted_with_their_lateness(store: FaultyStore, script: Script, seen: Seen) -> None:
    """By suite; lateness in seconds, and how many occurrences were coalesced."""
    tasks = Tasks(presets=())
    async with hosted(store, script, suites=[Reminders(), tasks]) as host:
        with seen.instrument(host):
            agent = await host.create_agent("a")
            await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 100})
            rule = EveryRule(60, anchor=script.now())
            await tasks.desk.create(CreateTask("x", "x", rule, TargetKind.NEW_ONCE), Caller(""))
            script.step(timedelta(seconds=190))
            await settled()
            metrics = seen.metrics()
    reminders, others = {"whenidle.suite": "reminders"}, {"whenidle.suite": "tasks"}
    assert sorted(metrics["whenidle.deliveries"], key=str) == [(reminders, 1), (others, 1)]
    assert sorted(metrics["whenidle.delivery.lateness"], key=str) == [(reminders, (1, 90)), (others, (1, 10))]
    assert metrics["whenidle.missed"] == [(others, 2)]
    assert metrics["whenidle.clock.steps"] == [({"whenidle.direction": "forward"}, 1)]


async def test_tool_calls_are_measured(store: FaultyStore, script: Script, seen: Seen) -> None:
    """By tool, and by code where the answer is a refusal."""
    async with hosted(store, script) as host:
        with seen.instrument(host):
            agent = await host.create_agent("a")
            await agent.call_tool("schedule_list", {})
            await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 0})
            metrics = seen.metrics()
    assert metrics["whenidle.tool_call.duration"] == [
        ({"gen_ai.tool.name": "schedule_list"}, (1, 0)),
        ({"gen_ai.tool.name": "schedule_create", "whenidle.code": "invalid_rule"}, (1, 0)),
    ]


async def test_turns_are_measured_by_outcome(store: FaultyStore, script: Script, seen: Seen) -> None:
    """From their beginning to their durable end; a failed commit is one of its error."""
    script.every_turn = sleeping(2.5)
    async with hosted(store, script) as host:
        with seen.instrument(host):
            agent = await host.create_agent("a")
            store.will(None, None, Fault.REFUSED)
            await agent.followup("x")
            await agent.when_idle()
            metrics = seen.metrics()
    [(attributes, (count, total))] = metrics["whenidle.turn.duration"]
    assert (attributes, count) == ({"whenidle.turn.outcome": "completed"}, 1)
    assert 2.5 <= total <= 3
    errors = [attributes for attributes, _ in metrics["whenidle.commit.duration"]]
    assert sorted(errors, key=str) == [{"error.type": "StoreFull"}, {}]
    assert metrics["whenidle.commit.size"][0][1] == sum(len(record.data) for record in store._logs["a"].records)


async def test_a_turn_without_an_end_is_forgotten_with_its_agent(
    store: FaultyStore, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that cannot write any more announces no ends of turns; they do not pile up."""
    script.every_turn = sleeping(1000)
    async with hosted(store, script) as host:
        meters = Meters(host, None)
        host.subscribe(meters.observe)
        agent = await host.create_agent("a")
        await agent.followup("x")
        await settled()
        began = dict(meters._began)
        monkeypatch.setattr(store, "dead", True)
        host.interrupt()
        await script.advance(timedelta(hours=1))
        assert host.agents == ()
        assert (list(began), meters._began) == (["a"], {})


async def test_failures_and_restarts_are_counted(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Deliveries that are tried again, and agents whose own code failed."""
    async with hosted(store, script, supervision=Supervision(intensity=1)) as host:
        with seen.instrument(host):
            agent = await host.create_agent("a")
            await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 10})
            store.will(Fault.REFUSED)
            await script.advance(timedelta(seconds=11))
            await agent.when_idle()
            for _ in range(2):
                store.will(Fault.BROKEN)
                with suppress(ZeroDivisionError):
                    await agent.inject("x")
            metrics = seen.metrics()
    assert metrics["whenidle.delivery.failures"] == [({"whenidle.final": False}, 1)]
    assert metrics["whenidle.agent.restarts"] == [({"whenidle.faulted": False}, 1), ({"whenidle.faulted": True}, 1)]


async def test_gauges_say_what_there_is_to_do(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Agents, turns that run and that wait, commits that wait and armed targets; asked from another thread."""
    script.every_turn = sleeping(100)
    async with hosted(store, script, max_concurrent_turns=1) as host:
        with seen.instrument(host):
            for name in "abc":
                agent = await host.create_agent(name)
                await agent.call_tool("schedule_create", {"prompt": "x", "after_seconds": 1000})
                await agent.followup("x")
            await settled()
            metrics = await trio.to_thread.run_sync(seen.metrics)
    gauges = {name: points[0][1] for name, points in metrics.items() if not isinstance(points[0][1], tuple)}
    assert {name: value for name, value in gauges.items() if name != "whenidle.commit.size"} == {
        "whenidle.agents": 3,
        "whenidle.turns.running": 1,
        "whenidle.turns.waiting": 2,
        "whenidle.mailbox.ready": 0,
        "whenidle.commits.waiting": 0,
        "whenidle.alarm.armed": 3,
    }


async def test_a_closed_instrumentation_reports_nothing_more(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Gauges fall silent, counters stay, and a host that has gone is not held."""
    async with hosted(store, script) as host:
        with seen.instrument(host):
            await host.create_agent("a")
        await host.create_agent("b")
        metrics = seen.metrics()
    assert "whenidle.agents" not in metrics
    assert metrics["whenidle.commit.duration"][0][1][0] == 1


def test_importing_whenidle_does_not_import_opentelemetry() -> None:
    """Whoever does not instrument pays nothing, not even at the start."""
    script = "import sys, whenidle, whenidle.cli.app; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_without_the_api_the_error_says_what_to_install() -> None:
    """The extra is named instead of a module that nobody asked for."""
    script = "import sys; sys.modules['opentelemetry'] = None; import whenidle.telemetry"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (
        "ModuleNotFoundError: whenidle.telemetry needs opentelemetry-api: pip install 'whenidle[otel]'" in done.stderr
    )
