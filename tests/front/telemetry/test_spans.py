"""Spans: what is a part of what, what is linked to what, and what is never in them."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from tests.actors.faulty_store import Fault
from tests.actors.runtime.worlds import Crash, hosted, settled, sleeping
from whenidle import EventKind, Reminders, Tasks
from whenidle.cli.service import instrumented
from whenidle.telemetry import instrument
from whenidle_actors.errors import CompositionError, StoreFull, UnknownTool

from .seen import context, links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.actors.faulty_store import FaultyStore
    from tests.actors.runtime.worlds import Script
    from whenidle import Agent, Host, HostEvent, Turn

    from .seen import Seen

WORDS = "the blue door"


async def create(agent: Agent, seconds: int = 60) -> Any:
    """Have a reminder created."""
    return await agent.call_tool("schedule_create", {"prompt": WORDS, "after_seconds": seconds})


async def create_task(agent: Agent, target: str = "this_session") -> Any:
    """Have a task created that is due in a minute."""
    rule = "DTSTART:20260101T000100Z\nRRULE:FREQ=MINUTELY;COUNT=1"
    arguments = {"title": WORDS, "prompt": WORDS, "rrule": rule, "target": target}
    return await agent.call_tool("schedule_create", arguments)


@asynccontextmanager
async def watched(seen: Seen, store: FaultyStore, script: Script, **options: Any) -> AsyncIterator[Host]:
    """Run a host that is instrumented."""
    async with hosted(store, script, **options) as host:
        with seen.instrument(host):
            yield host


async def pass_time(script: Script, seconds: float) -> None:
    """Let time pass, and all happen that happens then."""
    await script.advance(timedelta(seconds=seconds))
    await settled()


async def test_a_tool_call_is_a_span_with_its_commit_inside(store: FaultyStore, script: Script, seen: Seen) -> None:
    """The commit runs in the mailbox, in another task, and is a part of the call all the same."""
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        seen.exporter.clear()
        await create(agent)
        assert seen.tree() == ["execute_tool schedule_create", "  whenidle commit"]
        call, commit = seen.spans("execute_tool schedule_create")[0], seen.spans("whenidle commit")[0]
    assert dict(call.attributes or {}) == {"gen_ai.conversation.id": "a", "gen_ai.tool.name": "schedule_create"}
    assert (commit.attributes or {})["whenidle.commit.events"] == 2


async def test_a_refusal_is_an_answer_and_no_error(store: FaultyStore, script: Script, seen: Seen) -> None:
    """The span says which code, and that nothing went wrong."""
    async with watched(seen, store, script) as host:
        await create(await host.create_agent("a"), seconds=0)
    [call] = seen.spans("execute_tool schedule_create")
    assert (call.attributes or {})["whenidle.code"] == "invalid_rule"
    assert call.status.status_code is StatusCode.UNSET


async def test_a_delivery_is_linked_to_the_call_that_made_its_reminder(
    store: FaultyStore, script: Script, seen: Seen
) -> None:
    """Claim, delivery and commit are one trace; it is linked to the creation, and the turn is linked to it."""
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        await create(agent)
        await pass_time(script, 61)
    [created], [delivery], [turn] = map(
        seen.spans, ("execute_tool schedule_create", "whenidle delivery", "whenidle turn")
    )
    assert links(delivery) == [context(created).span_id]
    assert links(turn) == [context(delivery).span_id]
    assert dict(delivery.attributes or {}) == {
        "gen_ai.conversation.id": "a",
        "whenidle.schedules": ("schedule-1",),
        "whenidle.late_millis": (0,),
    }
    lines = seen.tree()
    start = lines.index("whenidle claim")
    assert lines[start : start + 3] == ["whenidle claim", "  whenidle delivery", "    whenidle commit"]
    assert turn.parent is None


async def test_the_link_outlives_the_process(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Another host, later, links its delivery to the span of the first."""
    async with watched(seen, store, script) as host:
        await create(await host.create_agent("a"))
    async with watched(seen, store, script) as host:
        await pass_time(script, 61)
    [created], [delivery] = seen.spans("execute_tool schedule_create"), seen.spans("whenidle delivery")
    assert links(delivery) == [context(created).span_id]
    assert context(created).trace_id == delivery.links[0].context.trace_id


@pytest.mark.parametrize("target", ["this_session", "new_once", "new"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_tasks_are_linked_as_well(
    store: FaultyStore, script: Script, seen: Seen, target: str, restarted: bool
) -> None:
    """Wherever a task goes, and whether its creator is in memory or not."""
    suites = [Tasks()]
    async with watched(seen, store, script, suites=suites) as host:
        await create_task(await host.create_agent("a"), target)
        if not restarted:
            await pass_time(script, 61)
    if restarted:
        async with watched(seen, store, script, suites=[Tasks()]) as host:
            await pass_time(script, 61)
    [created], [delivery] = seen.spans("execute_tool schedule_create"), seen.spans("whenidle delivery")
    assert links(delivery) == [context(created).span_id]
    [turn] = seen.spans("whenidle turn")
    assert links(turn) == [context(delivery).span_id]


async def test_a_log_with_traces_is_read_without_telemetry(store: FaultyStore, script: Script, seen: Seen) -> None:
    """What keeps a link is ignorable: a host that knows nothing of it delivers as usual."""
    async with watched(seen, store, script) as host:
        await create(await host.create_agent("a"))
    records = store._logs["a"].records
    assert [(record.type, record.ignorable) for record in records] == [
        ("schedule/change", False),
        ("trace/context", True),
    ]
    async with hosted(store, script) as host:
        await pass_time(script, 61)
    assert len(script.turns) == 1


async def test_what_the_turn_function_does_is_inside_its_turn(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Spans of the user's own, tool calls of the turn and their commits; the turn itself is a root."""
    tracer = seen.tracers.get_tracer("mine")

    async def work(turn: Turn) -> None:
        with tracer.start_as_current_span("model"):
            await turn.call_tool("schedule_list", {})
        await turn.note("x")

    script.every_turn = work
    with tracer.start_as_current_span("start of the program"):
        async with watched(seen, store, script) as host:
            agent = await host.create_agent("a")
            await agent.followup("x")
            await agent.when_idle()
    lines = seen.tree()
    at = lines.index("whenidle turn")
    assert lines[at : at + 4] == ["whenidle turn", "  model", "    execute_tool schedule_list", "  whenidle commit"]
    [turn] = seen.spans("whenidle turn")
    assert dict(turn.attributes or {}) == {
        "gen_ai.conversation.id": "a",
        "whenidle.turn.number": 1,
        "whenidle.turn.attempt": 1,
        "whenidle.messages": ("m0",),
        "whenidle.turn.outcome": "completed",
    }


async def test_maintenance_is_a_part_of_whatever_asked_for_it(store: FaultyStore, script: Script, seen: Seen) -> None:
    """A claim by the host's own code has that code's span for a parent."""
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        seen.exporter.clear()
        with seen.tracers.get_tracer("mine").start_as_current_span("compaction"):
            await agent.run_maintenance(agent.inbox)
    assert seen.tree()[:2] == ["compaction", "  whenidle claim"]


async def test_a_turn_that_fails_is_an_error_without_words(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Its status is an error; what the exception says is not repeated anywhere, nor are prompts and titles."""

    async def fail(turn: Turn) -> None:
        raise ValueError(WORDS)

    script.every_turn = fail
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        await create(agent)
        await agent.followup(WORDS)
        await agent.when_idle()
        with pytest.raises(Crash):
            await agent.run_maintenance(_crash)
    [turn], [claim] = seen.spans("whenidle turn"), seen.spans("whenidle claim")
    assert (turn.status.status_code, (turn.attributes or {})["whenidle.turn.outcome"]) == (StatusCode.ERROR, "error")
    assert (claim.status.status_code, (claim.attributes or {})["error.type"]) == (StatusCode.ERROR, "Crash")
    assert WORDS not in "".join(span.to_json() for span in seen.spans())


async def _crash() -> None:
    raise Crash(WORDS)


async def test_a_cancelled_claim_is_no_error(store: FaultyStore, script: Script, seen: Seen) -> None:
    """Work that its caller gave up ends its span without the status of an error."""
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        with trio.move_on_after(1):
            await agent.run_maintenance(trio.sleep_forever)
    [claim] = seen.spans("whenidle claim")
    assert (claim.status.status_code, (claim.attributes or {})["error.type"]) == (StatusCode.UNSET, "Cancelled")


async def test_a_failed_delivery_is_an_error_and_the_next_one_is_linked(
    store: FaultyStore, script: Script, seen: Seen
) -> None:
    """Each try has its own trace; the one that succeeds has the link."""
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        await create(agent)
        store.will(Fault.REFUSED)
        await pass_time(script, 70)
    failed, done = seen.spans("whenidle delivery")
    assert (failed.status.status_code, (failed.attributes or {})["error.type"]) == (StatusCode.ERROR, "StoreFull")
    assert (done.status.status_code, len(links(done))) == (StatusCode.UNSET, 1)


async def test_a_delivery_that_delivers_nothing_leaves_no_span(store: FaultyStore, script: Script, seen: Seen) -> None:
    """The clock was set back between the claim and the decision: there was nothing to tell of."""

    def set_back(event: HostEvent) -> None:
        if event.kind is EventKind.MAINTENANCE_STARTED:
            script.step(timedelta(hours=-1), announce=False)

    async with watched(seen, store, script) as host:
        await create(await host.create_agent("a"))
        host.subscribe(set_back)
        await pass_time(script, 60)
        assert len(seen.spans("whenidle claim")) == 1
        assert seen.spans("whenidle delivery") == []


async def test_a_link_that_cannot_be_kept_harms_no_task(store: FaultyStore, script: Script, seen: Seen) -> None:
    """The task is durable and the answer given; within the process even the link is there."""
    async with watched(seen, store, script, suites=[Tasks()]) as host:
        agent = await host.create_agent("a")
        store.will(None, Fault.REFUSED)
        assert (await create_task(agent))["status"] == "active"
        await pass_time(script, 61)
    [delivery] = seen.spans("whenidle delivery")
    assert len(links(delivery)) == 1


async def test_a_log_that_cannot_be_read_gives_no_link(store: FaultyStore, script: Script, seen: Seen) -> None:
    """A delivery goes before its link."""
    async with watched(seen, store, script) as host:
        await create(await host.create_agent("a"))
    async with watched(seen, store, script) as host:
        await host.agent("a")
        store.unreadable = 1
        await pass_time(script, 61)
    [delivery] = seen.spans("whenidle delivery")
    assert (len(script.turns), links(delivery)) == (1, [])


async def test_what_is_not_sampled_is_not_kept(store: FaultyStore, script: Script, seen: Seen) -> None:
    """A trace that nobody exports needs no place in a log."""
    nothing = TracerProvider(sampler=ALWAYS_OFF)
    async with hosted(store, script) as host:
        with instrument(host, tracer_provider=nothing, meter_provider=seen.meters):
            await create(await host.create_agent("a"))
    assert [record.type for record in store._logs["a"].records] == ["schedule/change"]


async def test_a_host_is_instrumented_once(store: FaultyStore, script: Script, seen: Seen) -> None:
    """A second time is refused, and leaves the first as it was; after its end another may come."""
    async with hosted(store, script) as host:
        first = seen.instrument(host)
        with pytest.raises(CompositionError, match="has a probe"):
            seen.instrument(host)
        first.close()
        first.close()
        assert not _announcer(host).attended
        with seen.instrument(host):
            assert _announcer(host).attended
            first.close()
            assert _announcer(host).tracing is not None


async def test_without_an_sdk_everything_works_and_nothing_is_kept(store: FaultyStore, script: Script) -> None:
    """With the API alone spans are no-ops, and no log gets an event for them."""
    async with hosted(store, script) as host:
        with instrument(host):
            agent = await host.create_agent("a")
            await create(agent)
            await pass_time(script, 61)
    assert len(script.turns) == 1
    assert "trace/context" not in {record.type for record in store._logs["a"].records}
    assert not trace.get_current_span().get_span_context().is_valid


async def test_work_under_way_outlives_the_end_of_its_instrumentation(
    store: FaultyStore, script: Script, seen: Seen
) -> None:
    """A turn that began as a span ends as one."""
    script.every_turn = sleeping(10)
    async with hosted(store, script) as host:
        with seen.instrument(host):
            agent = await host.create_agent("a")
            await agent.followup("x")
            await settled()
        await agent.when_idle()
    assert len(seen.spans("whenidle turn")) == 1


async def test_an_error_of_a_tool_call_is_on_its_span(store: FaultyStore, script: Script, seen: Seen) -> None:
    """What is raised to the caller marks the span, and an unknown tool makes none."""
    async with watched(seen, store, script, suites=[Reminders()]) as host:
        agent = await host.create_agent("a")
        with pytest.raises(UnknownTool):
            await agent.call_tool("x", {})
        store.will(Fault.REFUSED)
        with pytest.raises(StoreFull):
            await agent.followup("x")
    commits = seen.spans("whenidle commit")
    assert [(span.attributes or {}).get("error.type") for span in commits] == [None, "StoreFull"]
    assert not [span for span in seen.spans() if span.name.startswith("execute_tool")]


def _announcer(host: Host) -> Any:
    return host._services.announcer


async def test_a_trace_that_was_forgotten_is_found_in_the_log(
    store: FaultyStore, script: Script, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded; of a schedule beyond it the link is read again."""
    monkeypatch.setattr("whenidle_actors.tracing._REMEMBERED", 1)
    async with watched(seen, store, script) as host:
        agent = await host.create_agent("a")
        await create(agent, 60)
        await create(agent, 600)
        await pass_time(script, 61)
    [delivery] = seen.spans("whenidle delivery")
    assert links(delivery) == [context(seen.spans("execute_tool schedule_create")[0]).span_id]


async def test_only_so_many_deliveries_are_remembered_for_their_turns(
    store: FaultyStore, script: Script, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more that wait for a turn, the oldest turns have no link, and that is all."""
    monkeypatch.setattr("whenidle.telemetry.spans._DELIVERIES", 1)
    script.every_turn = sleeping(1)
    async with watched(seen, store, script, max_concurrent_turns=1) as host:
        for name in "abc":
            await create(await host.create_agent(name))
        await pass_time(script, 70)
    assert len(seen.spans("whenidle delivery")) == 3
    assert len([turn for turn in seen.spans("whenidle turn") if turn.links]) < 3


@pytest.mark.parametrize("loaded", [True, False])
async def test_run_instruments_its_host_where_the_sdk_is_loaded(
    store: FaultyStore, script: Script, monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    """As `opentelemetry-instrument` does before a program starts; else nothing of it is imported."""
    if not loaded:
        monkeypatch.delitem(sys.modules, "opentelemetry.sdk")
    async with hosted(store, script) as host:
        with instrumented(host):
            assert (_announcer(host).tracing is not None) is loaded
        assert not _announcer(host).attended
