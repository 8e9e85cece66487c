"""A turn function that tests write, and logs as text that tests can compare."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from whenidle_actors.composition import open_host
from whenidle_actors.session import Session, fold
from whenidle_clock import VirtualClock
from whenidle_protocol import turn_changes
from whenidle_protocol.events import (
    Lane,
    Message,
    MessageReplaced,
    MessagesRemoved,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from contextlib import AbstractContextManager

    from tests.actors.faulty_store import FaultyStore
    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.stores.base import Store
    from whenidle_actors.stores.memory import MemoryStore
    from whenidle_actors.turn import Turn
    from whenidle_protocol.events import Event, EventRecord
    from whenidle_protocol.session_state import SessionState

    Act = Callable[[Turn], Awaitable[object]]


WATCHDOG = 10**6
"""Virtual seconds after which a test that waits for nothing fails; no test waits so long."""


class Script(VirtualClock):
    """A turn function that does, for each message, what the test wrote under the message's text.

    It is the test's clock as well, because trio runs a test on a clock that is an argument of it.
    """

    def __init__(self) -> None:
        super().__init__(autojump=True)
        self.acts: dict[str, Act] = {}
        self.turns: list[Turn] = []
        self.every_turn: Act | None = None
        """What a turn does besides, whatever its messages."""
        self.running = 0
        self.most_running = 0

    def on(self, text: str, act: Act) -> None:
        """Write what a turn does when it gets the message `text`; without that it does nothing."""
        self.acts[text] = act

    async def begin(self, agent: Agent, text: str, act: Act) -> None:
        """Write what a turn does, send its message, and return when nothing more can happen without time."""
        self.on(text, act)
        await agent.followup(text)
        await settled()

    @property
    def taken(self) -> list[list[str]]:
        """The texts that each turn got, turn by turn."""
        return [[message.text for message in turn.messages] for turn in self.turns]

    async def __call__(self, turn: Turn) -> None:
        self.turns.append(turn)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self.every_turn is not None:
                await self.every_turn(turn)
            for message in turn.messages:
                if message.text in self.acts:
                    await self.acts[message.text](turn)
        finally:
            self.running -= 1


def sleeping(seconds: float) -> Act:
    """Return what sleeps."""

    async def act(_: Turn) -> None:
        await trio.sleep(seconds)

    return act


def stubborn(seconds: float) -> Act:
    """Return what sleeps and does not let itself be cancelled."""

    async def act(_: Turn) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)

    return act


@asynccontextmanager
async def hosted(store: Store, script: Script, **options: Any) -> AsyncIterator[Host]:
    """Run a host on the test's clock."""
    with trio.fail_after(WATCHDOG):
        async with open_host(store=store, turn=script, clock=script, **options) as host:
            yield host


@asynccontextmanager
async def living(store: Store, script: Script, **options: Any) -> AsyncIterator[Agent]:
    """Run a host and its agent `a`, new or restored."""
    async with hosted(store, script, **options) as host:
        known = {header.id for header in await store.sessions()}
        yield await (host.agent("a") if "a" in known else host.create_agent("a"))


@asynccontextmanager
async def dying(store: FaultyStore, script: Script, **options: Any) -> AsyncIterator[Agent]:
    """Run a host and its agent `a` up to the end of the block, where the process dies: what is in the log, is."""
    with suppress(Crash):
        async with living(store, script, **options) as agent:
            yield agent
            store.dead = True
            raise Crash
    store.revive()


async def foreign(agent: Agent, text: str, *, wake: bool = False) -> None:
    """Append to the agent's session as another process does."""
    other = await Session.load(agent.services.journal, agent.id)
    await other.decide(lambda state: turn_changes.insert(state, Lane.NEXT_STEP, text, Source.USER, wake=wake))


class Crash(Exception):
    """The process died."""


async def expecting(
    failure: AbstractContextManager[object], call: Callable[..., Awaitable[object]], *given: Any
) -> None:
    """Call something that is to fail, as a task beside the test: `failure` is a `pytest.raises`."""
    with failure:
        await call(*given)


async def settled() -> None:
    """Return when everything that can run without time has run."""
    await wait_all_tasks_blocked()


def tasks() -> int:
    """Return how many tasks there are."""
    return trio.lowlevel.current_statistics().tasks_living


def log(store: MemoryStore, session_id: str = "a") -> list[str]:
    """Return a session's log, one line an event."""
    return told(store._logs[session_id].records)


def told(records: Iterable[EventRecord]) -> list[str]:
    """Return events as text, one line each."""
    return [_tell(decode(record)) for record in records]


def _tell(event: Event) -> str:  # noqa: PLR0911 - one for each kind
    match event:
        case Message(id=name, text=text):
            return f"insert {name} {text}"
        case MessagesRemoved(ids=ids):
            return f"remove {_names(ids)}"
        case MessageReplaced(id=name, text=text):
            return f"replace {name} {text}"
        case TurnStarted(turn=turn, claimed=ids, attempt=attempt):
            return f"start {turn}: {_names(ids)}" + (f" (attempt {attempt})" if attempt > 1 else "")
        case StepClaimed(turn=turn, ids=ids):
            return f"claim {turn}: {_names(ids)}"
        case TurnAborted(turn=turn, cause=cause, removed=ids):
            return f"abort {turn} ({cause}): {_names(ids)}"
        case TurnEnded(turn=turn, outcome=outcome, cause=cause, redeliver=redeliver):
            return f"end {turn} {outcome}" + (f" ({cause})" if cause else "") + (" redeliver" if redeliver else "")
        case TurnNoted(turn=turn, data=data):
            return f"note {turn} {data}"
        case _:
            return type(event).__name__


def _names(ids: Iterable[str]) -> str:
    return ",".join(ids)


def looks(state: SessionState) -> dict[str, Any]:
    """Return all that a state says, as values that compare."""
    return {
        "length": state.length,
        "turns": state.turns,
        "turn": state.turn,
        "redelivery": state.redelivery,
        "awake": state.awake and state.inbox.waking > 0,  # of an empty inbox it says nothing
        "next_turn": state.inbox.next_turn,
        "next_step": state.inbox.next_step,
        "waking": state.inbox.waking,
        "reminders": tuple(state.reminders),
    }


async def assert_replays(agent: Agent) -> None:
    """Fail unless the log, folded from its beginning, is what the live agent believes."""
    whole = await agent.services.journal.store.read(agent.id)
    live = agent.session.confirmed_state
    assert live is not None
    assert looks(fold(whole.header, whole.records)) == looks(live)
