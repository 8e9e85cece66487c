"""Deliveries to many sessions together: what is common to them, and what stays each one's own."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from tests.actors.reminders.faults import Fate
from whenidle_actors.observation import EventKind
from whenidle_actors.session import Session
from whenidle_actors.stores.base import Append, Batch, Role, TaskWrite
from whenidle_actors.stores.sqlite import SqliteStore
from whenidle_actors.task_deliveries import TaskDeliveries
from whenidle_actors.task_rounds import Keeping, Place, TaskRound
from whenidle_protocol.agent_state import Phase
from whenidle_protocol.events import EventRecord
from whenidle_protocol.task_requests import UpdateTask
from whenidle_protocol.task_settings import Caller

from .worlds import TaskWorld, every, once, seconds, settled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from whenidle_actors.host import Host
    from whenidle_protocol.task_record import Task

NAMES = tuple(f"s{number}" for number in range(7))
EACH_ONCE = {name: [1, 1] for name in NAMES}


@pytest.fixture(autouse=True)
def _small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sessions a round, so that seven take several."""
    monkeypatch.setattr("whenidle_actors.task_line._ROUND", 3)
    monkeypatch.setattr("whenidle_actors.task_rounds._AT_A_TIME", 2)


async def populate(world: TaskWorld, host: Host, *, each: int = 2) -> dict[str, list[Task]]:
    """Make an agent for each name, with tasks that come due every 300 s, for the first time after 10 s."""
    made: dict[str, list[Task]] = {}
    for name in NAMES:
        await host.create_agent(name)
        made[name] = [await world.make(every(300, 10), by=name, title=f"{name} {n}") for n in range(each)]
    return made


def of(name: str) -> Any:
    """Return a question whether a batch delivers to a session."""
    return lambda batch: any(append.session_id == name for append in batch.appends) and bool(batch.receipts)


async def delivered_titles(world: TaskWorld, at: float) -> list[str]:
    """Return the titles of the tasks that were delivered at a second, in order."""
    return sorted(title for when, title, _, _ in await world.delivered() if when == at)


async def receipts(world: TaskWorld, made: dict[str, list[Task]]) -> dict[str, list[int]]:
    """Return how often each task was delivered."""
    return {
        name: [len((await world.store.receipts(task.id)).receipts) for task in tasks] for name, tasks in made.items()
    }


def both(*names: str) -> list[str]:
    """Return the titles of the two tasks of each session."""
    return sorted(f"{name} {n}" for name in names for n in range(2))


@pytest.mark.parametrize("cold", [False, True])
async def test_each_session_gets_one_message_by_a_commit_of_its_own(any_world: TaskWorld, cold: bool) -> None:
    """Live or to be restored, at the same instant, all tasks in it; the turns follow."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        if not cold:
            world.store.batches.clear()
            await world.wait(10)
    if cold:
        await world.advance(seconds(10))
        world.store.batches.clear()
        async with world.host():
            await world.wait(0)
    deliveries = [batch for batch in world.store.batches if batch.receipts]
    assert sorted(append.session_id for batch in deliveries for append in batch.appends) == sorted(NAMES)
    assert all(len(batch.tasks) == len(batch.receipts) == 2 for batch in deliveries)
    assert len(world.runs) == len(NAMES)
    async with world.host():
        assert await delivered_titles(world, 10) == both(*NAMES)


async def test_a_round_shares_transactions(world: TaskWorld, tmp_path: Path) -> None:
    """On SQLite: as many commits as sessions, in a few groups."""
    store = SqliteStore(tmp_path / "store")
    world.store = store  # type: ignore[assignment] # nothing is to fail here
    async with world.host() as host:
        made = await populate(world, host)
    await world.advance(seconds(10))
    async with world.host(max_concurrent_turns=1) as host:
        await world.wait(0)
        statistics = host.statistics().store
        assert statistics.commits == 3 * len(NAMES)  # each with the begin and the end of a turn
        assert statistics.groups <= statistics.commits - 4
        assert await receipts(world, made) == EACH_ONCE
        assert list(await store.check()) == []


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.FULL, Fate.LOST])
async def test_a_commit_that_fails_puts_off_that_session_alone(any_world: TaskWorld, fate: Fate) -> None:
    """The others get theirs at once; it gets its own after a pause, once."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        world.store.fail(fate, of=of("s1"))
        await world.wait(10)
        assert await delivered_titles(world, 10) == both(*(name for name in NAMES if name != "s1"))
        assert world.count(EventKind.DELIVERY_FAILED) == 1
        await world.wait(30)
        assert sorted(title for _, title, _, _ in await world.delivered()) == both(*NAMES)
        assert len(world.runs) == len(NAMES)


async def test_a_commit_that_turns_out_to_be_there_was_a_delivery(any_world: TaskWorld) -> None:
    """Uncertain, and read back: told of as delivered, and nothing is delivered twice."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        world.store.fail(Fate.KEPT, Fate.KEPT, of=of("s1"))
        await world.wait(10)
        assert await delivered_titles(world, 10) == both(*NAMES)
        assert world.count(EventKind.TASK_DELIVERED) == len(NAMES)
        assert world.count(EventKind.DELIVERY_FAILED) == 0
        await world.wait(300)
        assert await delivered_titles(world, 310) == both(*NAMES)
        assert len(world.runs) == 2 * len(NAMES)


async def test_a_task_that_changes_during_the_decision_is_decided_about_anew(any_world: TaskWorld) -> None:
    """The write of its session is refused, its neighbours' are not; the other task of the session comes by itself."""
    world = any_world
    async with world.host() as host:
        made = await populate(world, host)
        edited = made["s2"][0]
        request = UpdateTask(edited.id, active=False)

        async def edit(batch: Batch) -> None:
            if of("s2")(batch):
                world.store.before = nothing
                await world.desk.edit(request, Caller("s2"))

        async def nothing(_: Batch) -> None:
            """Let it go on."""

        world.store.before = edit
        await world.wait(10)
        assert await delivered_titles(world, 10) == sorted({*both(*NAMES)} - {"s2 0"})
        assert (await world.view(edited)).deliveries == 0
        assert world.count(EventKind.DELIVERY_FAILED) == 0


async def test_a_log_that_grows_elsewhere_is_read_again(any_world: TaskWorld) -> None:
    """Another process appends to a session between the decision and the commit."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)

        async def append(batch: Batch) -> None:
            if of("s2")(batch):
                world.store.before = nothing
                record = EventRecord("seen", 0, "{}", ignorable=True)
                await world.store.inner.commit(Batch((Append("s2", batch.appends[0].expected, (record,)),)))

        async def nothing(_: Batch) -> None:
            """Let it go on."""

        world.store.before = append
        await world.wait(10)
        assert await delivered_titles(world, 10) == both(*NAMES)
        assert world.count(EventKind.DELIVERY_FAILED) == 0


async def test_who_is_busy_gets_it_when_idle(any_world: TaskWorld) -> None:
    """A turn, a maintenance task, and an operation in the mailbox each keep their agent out of the round."""
    world = any_world
    world.turn_seconds = 100
    async with world.host() as host:
        await populate(world, host)
        await (await host.agent("s0")).followup("work")
        other, third = await host.agent("s1"), await host.agent("s2")

        async def long() -> None:
            await trio.sleep(50)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.run_maintenance, long)
            nursery.start_soon(third.in_queue, long)
            await world.wait(10)
            assert await delivered_titles(world, 10) == both(*NAMES[3:])
            await world.wait(40)
            assert await delivered_titles(world, 50) == both("s1", "s2")
        await world.wait(50)
        assert await delivered_titles(world, 100) == both("s0")


async def test_during_the_commit_each_agent_is_claimed(any_world: TaskWorld) -> None:
    """What is asked of one meanwhile waits, and is served behind the delivery; a message runs in its turn."""
    world = any_world
    seen: list[tuple[Phase, str]] = []
    async with world.host() as host:
        await populate(world, host)
        agent = await host.agent("s0")

        async def look(batch: Batch) -> None:
            if of("s0")(batch):
                seen.extend((other.phase, other.status.value) for other in host.agents)
                nursery.start_soon(agent.followup, "more")
                await settled()

        world.store.before = look
        async with trio.open_nursery() as nursery:
            await world.wait(10)
        assert seen[:3] == [(Phase.MAINTENANCE, "idle")] * 3
        assert [ids for _, ids, _ in world.runs].count(("m0",)) == len(NAMES)
        assert len(world.runs) == len(NAMES) + 1


@pytest.mark.parametrize("act", ["cancel", "dispose"])
async def test_a_claim_that_is_aborted_before_the_decision_gets_nothing_in_it(any_world: TaskWorld, act: str) -> None:
    """Its neighbours get theirs; it gets its own in the next claim, of the next agent if this one is disposed."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        agent = await host.agent("s1")
        acted = False

        async def act_in_the_claim() -> None:
            nonlocal acted
            if not acted and agent.phase is Phase.MAINTENANCE:
                acted = True
                nursery.start_soon(agent.cancel, "stop") if act == "cancel" else nursery.start_soon(agent.dispose)
                await settled()

        world.store.after_tasks = act_in_the_claim
        async with trio.open_nursery() as nursery:
            await world.wait(10)
        assert acted
        assert await delivered_titles(world, 10) == both(*NAMES)
        assert len(world.runs) == len(NAMES)


async def test_a_task_that_cannot_be_read_is_complained_about_and_the_others_arrive(any_world: TaskWorld) -> None:
    """Neither the other task of its session nor its neighbours suffer."""
    world = any_world
    async with world.host() as host:
        made = await populate(world, host)
        row = await world.store.inner.task(made["s1"][0].id)
        damaged = attrs.evolve(row, data="{}", updated_millis=row.updated_millis + 1)
        await world.store.inner.commit(Batch(tasks=(TaskWrite(row.id, row.updated_millis, damaged),)))
        await world.wait(10)
        assert await receipts(world, made) == {**EACH_ONCE, "s1": [0, 1]}
        assert world.count(EventKind.DELIVERY_FAILED) == 1


async def test_a_session_that_has_more_due_than_a_round_takes_gets_all_of_it(
    any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one message all the same."""
    monkeypatch.setattr("whenidle_actors.task_rounds.MOST_TASKS", 2)
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        for number in range(2, 4):
            await world.make(every(300, 10), by="s1", title=f"s1 {number}")
        await world.wait(10)
        assert await delivered_titles(world, 10) == sorted([*both(*NAMES), "s1 2", "s1 3"])
        assert len(world.runs) == len(NAMES)


async def test_a_session_in_doubt_is_read_again_first(any_world: TaskWorld) -> None:
    """Its agent is live and its state is not known: it gets its message all the same, at once."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        (await host.agent("s1")).session.drop()
        await world.wait(10)
        assert await delivered_titles(world, 10) == both(*NAMES)


async def test_tasks_that_go_before_the_claim_are_not_delivered(any_world: TaskWorld) -> None:
    """They were due when the round began and are gone when it reads what is due."""
    world = any_world
    async with world.host() as host:
        made = await populate(world, host)

        async def delete() -> None:
            world.store.after_tasks = settled
            rows = [await world.store.inner.task(task.id) for task in made["s1"]]
            writes = tuple(TaskWrite(row.id, row.updated_millis, None) for row in rows)
            await world.store.inner.commit(Batch(tasks=writes))

        world.store.after_tasks = delete
        await world.wait(10)
        assert await delivered_titles(world, 10) == both(*(name for name in NAMES if name != "s1"))
        assert len(world.runs) == len(NAMES) - 1


async def test_what_is_too_late_is_skipped_without_a_message(any_world: TaskWorld) -> None:
    """All that is due of some sessions lies beyond their window: their tasks move on, and no turn runs."""
    world = any_world
    async with world.host() as host:
        made = []
        for number, name in enumerate(NAMES):
            await host.create_agent(name)
            window = 60 if number % 2 else None
            made.append(await world.make(every(86_400, 10), by=name, title=f"{name} 0", catch_up_seconds=window))
    await world.advance(seconds(3600))
    async with world.host():
        await world.wait(0)
        assert await delivered_titles(world, 3600) == [f"{name} 0" for name in NAMES[::2]]
        assert [(await world.view(task)).skipped for task in made] == [0, 1] * 3 + [0]
        assert len(world.runs) == 4


async def test_a_round_that_is_cancelled_while_it_reads_claims_nobody_any_more(any_world: TaskWorld) -> None:
    """As when the host's tasks are torn down: agents are released, and nothing is changed."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        world.store.after_tasks = trio.sleep_forever
        deliveries = world.tasks._deliveries
        assert deliveries is not None
        cut_off = TaskRound(deliveries._office, map(Place, NAMES), Keeping())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cut_off.prepare)
            await settled()
            assert {agent.phase for agent in host.agents} == {Phase.MAINTENANCE}
            nursery.cancel_scope.cancel()
        assert {agent.phase for agent in host.agents} == {Phase.IDLE}
        assert await cut_off.commit() == dict.fromkeys(NAMES)


async def test_one_shots_come_one_a_turn_also_from_rounds(any_world: TaskWorld) -> None:
    """Three of each session: the first in a round, the others after the turn of the one before."""
    world = any_world
    world.turn_seconds = 5
    async with world.host() as host:
        for name in NAMES:
            await host.create_agent(name)
            for number in range(3):
                await world.make(once(10), by=name, title=f"{name} {number}")
        await world.wait(30)
        times = sorted(when for when, _, _, _ in await world.delivered())
        assert times == sorted([10, 15, 20] * len(NAMES))
        assert len(world.runs) == 3 * len(NAMES)


async def test_a_decision_that_fails_is_made_again_by_itself(
    any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect in the decision about one session leaves its neighbours alone."""
    world = any_world
    real, failed = Session.draft, False

    def draft(session: Session, *arguments: Any) -> Any:
        nonlocal failed
        if session.header.id == "s1" and not failed:
            failed = True
            raise ZeroDivisionError("a defect")
        return real(session, *arguments)

    monkeypatch.setattr(Session, "draft", draft)
    async with world.host() as host:
        await populate(world, host)
        await world.wait(10)
        assert failed
        assert await delivered_titles(world, 10) == both(*NAMES)


@pytest.mark.parametrize("method", ["read_all", "due_tasks_of", "commit_all"])
async def test_a_round_that_fails_as_a_whole_is_delivered_one_by_one(
    any_world: TaskWorld, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Whatever the store raises, nothing is lost and nobody stays claimed."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
    await world.advance(seconds(10))

    async def fail(*_: Any, **__: Any) -> Any:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError("a defect of the store")

    monkeypatch.setattr(world.store, method, fail)
    async with world.host():
        await world.wait(0)
        assert await delivered_titles(world, 10) == both(*NAMES)
        assert len(world.runs) == len(NAMES)


async def test_sessions_that_are_gone_or_unreadable_leave_the_others_alone(any_world: TaskWorld) -> None:
    """A target that does not exist fails visibly, and a log that cannot be folded is tried again."""
    world = any_world
    async with world.host() as host:
        made = await populate(world, host)
        await world.make(every(300, 10), by="nobody", title="lost")
    record = EventRecord("unheard of", 0, "{}")
    await world.advance(seconds(10))
    async with world.store.inner.opened(Role.MANAGER):
        length = (await world.store.inner.read("s1")).length
        await world.store.inner.commit(Batch((Append("s1", length, (record,)),)))
    async with world.host():
        await world.wait(0)
        assert await receipts(world, made) == {**EACH_ONCE, "s1": [0, 0]}
        assert world.count(EventKind.TASK_FAILED) == 1


async def test_a_host_that_stops_during_a_round_delivers_what_was_decided_and_no_more(any_world: TaskWorld) -> None:
    """The rest comes from the next host, once."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        stop = trio.Event()

        async def stop_at(batch: Batch) -> None:
            if batch.receipts:
                stop.set()
                await settled()

        world.store.before = stop_at
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.wait, 10)
            await stop.wait()
            nursery.cancel_scope.cancel()

    async def nothing(_: Batch) -> None:
        """Let it go on."""

    world.store.before = nothing
    async with world.host():
        await world.wait(60)
        assert sorted(title for _, title, _, _ in await world.delivered()) == both(*NAMES)


async def test_decisions_leave_room_by_the_number_of_tasks(world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are due of each session, others run after a bounded number of them."""
    monkeypatch.setattr("whenidle_actors.task_rounds._AT_A_TIME", 3)
    decided: list[int] = []
    monkeypatch.setattr(TaskRound, "_decide_for", lambda *args: decided.append(len(args[2])))
    seen: list[int] = []

    async def look() -> None:
        while True:
            seen.append(sum(decided))
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(TaskDeliveries, "look", lambda _: None)
    async with world.host() as host:
        await populate(world, host, each=3)
        await world.advance(seconds(10))
        deliveries = world.tasks._deliveries
        assert deliveries is not None
        prepared = TaskRound(deliveries._office, map(Place, NAMES[:3]), Keeping())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            await prepared.prepare()
            nursery.cancel_scope.cancel()
        assert await prepared.commit() == dict.fromkeys(NAMES[:3])
    # Trio may run this task first in one round and last in the next, and so let it miss one in two.
    assert all(after - before <= 6 for before, after in pairwise([0, *seen, 9]))


async def test_a_host_that_stops_restores_nobody_for_the_rounds_that_are_left(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cold sessions of rounds that have not begun stay cold: a stop does not wait until all are read."""
    monkeypatch.setattr("whenidle_actors.task_line._ROUND", 1)
    async with world.host() as host:
        await populate(world, host, each=1)
    await world.advance(seconds(10))
    stop = trio.Event()

    async def stop_at(batch: Batch) -> None:
        if batch.receipts:
            stop.set()
            await settled()

    world.store.before = stop_at
    before = world.count(EventKind.AGENT_STARTED)
    async with world.host():
        await stop.wait()
    assert 0 < world.count(EventKind.AGENT_STARTED) - before <= 4  # two commit, one waits, one may be read
    async with world.host():
        await world.wait(60)
        assert len(await world.delivered()) == len(NAMES)


async def test_a_store_answers_for_many_what_it_answers_for_each(any_world: TaskWorld) -> None:
    """Sessions, due tasks and commits; what cannot be had is left out."""
    world = any_world
    async with world.host() as host:
        await populate(world, host)
        store = world.store.inner
        assert await store.read_all([]) == []
        found = await store.read_all(["s1", "unknown", "s0"])
        assert found == [await store.read("s1"), None, await store.read("s0")]
        later = world.now_millis() + 10_000
        rows: Sequence[Any] = await store.due_tasks_of(["s1", "unknown"], later)
        assert rows == [await store.due_tasks(later, session_id="s1"), ()]
        assert await store.due_tasks_of(["s1"], later, limit=1) == [rows[0][:1]]
        assert await store.commit_all([]) == []
        record = EventRecord("seen", 0, "{}", ignorable=True)
        batches = [Batch((Append(name, 0, (record,)),)) for name in ("s1", "unknown", "s0")]
        answers = await store.commit_all(batches)
        assert [type(answer).__name__ for answer in answers] == ["NoneType", "UnknownSession", "NoneType"]
        assert [(await store.read(name)).length for name in ("s0", "s1", "s2")] == [1, 1, 0]
