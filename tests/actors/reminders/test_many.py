"""Many agents, many reminders (SPEC 2.11; CASES 18, 38)."""

from __future__ import annotations

import gc
import sys
from datetime import timedelta
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

import trio

from whenidle_protocol.reminder_state import ReminderState, apply
from whenidle_protocol.schedule_change import AfterReminder, Create, Dispatch, EveryReminder

from .logs import balance, read_log
from .worlds import START, T0, World, create

if TYPE_CHECKING:
    from whenidle_actors.turn import Turn

HOURS = 10
AGENTS = 1000


async def test_a_thousand_agents_that_come_due_together_are_paced(world: World) -> None:
    """After ten hours of suspend each gets one coalesced message, ten turns at a time, in order per agent."""
    running, most = 0, 0
    seen: dict[str, list[str]] = {}

    async def turn(turn: Turn) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        seen.setdefault(turn.agent.id, []).extend(message.text for message in turn.messages)
        await trio.sleep(1)
        running -= 1

    world.during_turn = turn
    async with world.host(max_concurrent_turns=10) as host:
        for number in range(AGENTS):
            agent = await host.create_agent(f"agent-{number}")
            await create(agent, "stretch", every_seconds=300)
            if number % 100 == 0:
                await create(agent, "call", after_seconds=3600)
        world.suspend(timedelta(hours=HOURS))
        await world.wait(AGENTS / 10 + 10)
        assert most == 10
        assert len(seen) == AGENTS
        for number in range(AGENTS):
            texts = seen[f"agent-{number}"]
            once = number % 100 == 0
            assert [text.split("\n")[0] for text in texts] == ["[SCHEDULE REMINDER]"] * once + [
                "[SCHEDULE REMINDER BATCH]"
            ]
        ledger = balance(await read_log(world.store, "agent-7"))
        assert ledger.delivered == [("schedule-1", T0 + HOURS * 3600 * 1000)]


def reachable_size(root: object) -> int:
    """Return the bytes of everything that `root` keeps alive, code and types left out."""
    found, waiting = {id(root): root}, [root]
    while waiting:
        for thing in gc.get_referents(waiting.pop()):
            if id(thing) not in found and not isinstance(thing, type | ModuleType | FunctionType):
                found[id(thing)] = thing
                waiting.append(thing)
    return sum(sys.getsizeof(thing) for thing in found.values())


def fire(state: ReminderState, first: int, last: int) -> None:
    """Create and dispatch the one-shots of these numbers, ten at a time."""
    for start in range(first, last, 10):
        ids = [f"schedule-{number}" for number in range(start, start + 10)]
        for name in ids:
            apply(state, Create(AfterReminder(name, "x", 1, START)))
        for name in ids:
            apply(state, Dispatch(name))


def test_the_fold_of_a_hundred_thousand_reminders_is_flat() -> None:
    """Created and fired, they leave nothing behind but a number; what stays active stays all the same."""
    state = ReminderState()
    for number in range(1, 10):
        apply(state, Create(EveryReminder(f"schedule-{number}", "stay", 300, START)))
    fire(state, 10, 1000)
    before = reachable_size(state)
    fire(state, 1000, 100_000)
    assert (len(state.seen), len(state)) == (99_999, 9)
    assert state.next_id() == "schedule-100000"
    assert reachable_size(state) - before < 1000


async def test_a_runtime_that_fires_thousands_of_reminders_stays_as_it_was(world: World) -> None:
    """Neither the fold, nor the alarm, nor the tasks of a host grow with what has been delivered."""
    async with world.root() as agent:
        await create(agent, every_seconds=300)
        for burst in range(40):
            for _ in range(50):
                await create(agent, after_seconds=60)
            await world.wait(60)
            state = agent.session.confirmed_state
            assert state is not None
            assert len(state.reminders) == 1
            assert len(state.reminders._one_shots) + len(state.reminders._recurring) <= 40
            assert len(state.reminders.seen._others) == 0
            assert not state.inbox
            statistics = agent.statistics()
            assert (statistics.depth, statistics.system_depth, statistics.pending) == (0, 0, 0)
            assert len(world.runs) >= 50 * (burst + 1)
        alarm = agent.services.alarm.statistics()
        assert (alarm.armed, alarm.stale <= 100) == (1, True)
        assert len((await world.ledger()).deliveries) == 2000 + 8
