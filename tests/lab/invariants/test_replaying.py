from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import pytest

from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.run import run
from whenidle_lab.scenario import Scenario
from whenidle_protocol.events import Lane, Message, Source
from whenidle_protocol.open_turn import Redelivery

from .tales import START, Tale, breaks, create, end, insert, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_lab.world import World
    from whenidle_protocol.session_state import SessionState

NAME = "replay-gives-state"


class Tampered(Scenario):
    """An agent whose state in memory somebody changes behind the back of its log."""

    name = "tampered"
    tamper: ClassVar[Callable[[SessionState], None]]

    async def play(self, world: World) -> None:
        agent = await world.agent("ada")
        await world.send(agent, "hello", "inject")
        await world.call(agent, "schedule_create", {"prompt": "tea", "after_seconds": 3600})
        state = agent.session.confirmed_state
        assert state is not None
        await world.wait(1)
        type(self).tamper(state)
        agent.session._fold = state
        await world.send(agent, "hello", "inject")
        await world.wait(1)


def _append(state: SessionState) -> None:
    state.inbox.insert(Message("m9", Lane.NEXT_TURN, wake=True, text="", source=Source.USER))


def _forget(state: SessionState) -> None:
    state.inbox.remove(["m0"], "")


def _rewrite(state: SessionState) -> None:
    state.inbox.replace("m0", "other")


def _count(state: SessionState) -> None:
    state.turns += 1


def _redeliver(state: SessionState) -> None:
    state.redelivery = Redelivery((), 7)


def _drop(state: SessionState) -> None:
    state.reminders._active.clear()


@pytest.mark.parametrize(
    ("tamper", "name"),
    [
        (_append, NAME),
        (_forget, NAME),
        (_rewrite, NAME),
        (_count, NAME),
        (_redeliver, "log-well-formed"),  # what it decides from that is noticed before that is
        (_drop, "log-well-formed"),
    ],
)
def test_a_state_that_is_not_what_the_log_says_is_noticed(tamper: Callable[[SessionState], None], name: str) -> None:
    """A message too many or too few, another text, number or target: as soon as the agent holds it for confirmed."""
    Tampered.tamper = staticmethod(tamper)
    finding = run(Tampered()).finding
    assert finding is not None
    assert (finding.kind, finding.name) == (FindingKind.INVARIANT, name)


def test_a_state_that_is_what_the_log_says_passes() -> None:
    """Nothing is found if nothing was changed."""
    Tampered.tamper = staticmethod(lambda _: None)
    assert run(Tampered()).finding is None


class Held:
    """An agent that holds the state which the runtime's own fold gives, or another."""

    def __init__(self, tale: Tale, session: str = "ada") -> None:
        self.id = session
        self.suites: tuple[Any, ...] = ()
        self._state = tale.states[session]
        self.session = SimpleNamespace(confirmed_state=self._state, rest=lambda: None)
        tale.stub.host._services.registry.live[session] = self
        tale.agents.append(self)


def test_open_turns_redeliveries_and_reminders_are_compared() -> None:
    """All that decides what an agent does next is the same in both folds, after each commit."""
    tale = Tale()
    tale.agent()
    Held(tale)
    for records in (
        (insert("m0"), insert("m1", lane="next-step", wake=False)),
        (start(1, ["m1", "m0"]),),
        (("turn/abort", {"turn": 1, "cause": "stop", "removed": []}),),
        (end(1, "aborted"), insert("m2"), start(2, ["m2"])),
        (end(2, "interrupted", redeliver=True),),
        (create("s", START + 60_000, afterSeconds=60), create("e", START + 300_000, everySeconds=300)),
    ):
        tale.commit("ada", *records)
        tale.look()


def test_more_than_is_durable_is_noticed() -> None:
    """An agent that holds events for confirmed which are not in the log is noticed."""
    tale = Tale()
    tale.agent()
    held = Held(tale)
    tale.commit("ada", insert("m0", wake=False))
    held.session.confirmed_state = SimpleNamespace(length=7)
    with breaks(NAME, "holds 7 events"):
        tale.look()


def test_less_than_is_durable_is_noticed_in_the_end() -> None:
    """An agent may not have seen the latest events yet; when all is at rest it has."""
    tale = Tale()
    tale.agent()
    held = Held(tale)
    tale.commit("ada", insert("m0", lane="next-step", wake=False))
    held.session.confirmed_state = None
    tale.settle()  # it is in doubt, and reads the log back before it decides anything
    held.session.confirmed_state = SimpleNamespace(length=0)
    tale.look()
    with breaks(NAME, "holds 0 events"):
        tale.settle()


def test_an_agent_that_is_not_live_holds_nothing() -> None:
    """It is compared when it is live again; a new process knows nothing of what was to be compared."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", insert("m0", lane="next-step", wake=False))
    tale.look()
    tale.settle()
    tale.die()
    tale.life()
    tale.look()
    held = Held(tale)
    held.session.confirmed_state = SimpleNamespace(length=9)
    with breaks(NAME):
        tale.announce("agent-started")
        tale.look()


def test_a_finding_says_what_differs() -> None:
    """Both folds are shown, in what they differ."""
    Tampered.tamper = staticmethod(_count)
    finding = run(Tampered()).finding
    assert isinstance(finding, Finding)
    assert "'turns': 1" in finding.text
    assert "'turns': 0" in finding.text
    assert attrs.asdict(finding)["name"] == NAME
