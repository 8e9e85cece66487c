"""What is in memory is what the log says (SPEC 3.2, 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from whenidle_clock import to_millis
from whenidle_lab.scenario import EachRound
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.ledger import Ledger
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World
    from whenidle_protocol.session_state import SessionState


class ReplayGivesState(EachRound):
    """The state that a live agent holds for confirmed is the fold of what is durable.

    It is compared, field by field, with the lab's own fold of the same records, once after each commit: as soon as
    the agent holds it for confirmed. Its parts that decide are compared: what is pending, what runs, what wakes,
    which reminders are active in which order and with which targets.
    """

    name = "replay-gives-state"
    listens: ClassVar[frozenset[What]] = frozenset({What.COMMIT_DURABLE, What.HOST, What.LIFE_BEGAN})

    def __init__(self, books: Books) -> None:
        self._books = books
        self._unseen: dict[str, None] = {}
        """Sessions that are to be compared, in an order that is the same in every replay."""

    def happened(self, happening: Happening) -> None:
        """Take note of what is to be compared."""
        if happening.what is What.COMMIT_DURABLE:
            for session in self._books.commit.appended:
                self._unseen[session] = None
        elif happening.what is What.LIFE_BEGAN:
            self._unseen.clear()
        elif happening.detail["event"] == "agent-started":
            self._unseen[happening.agent] = None

    def look(self, world: World) -> None:
        """Compare what agents hold for confirmed with the books."""
        if self._unseen:
            host: Any = world.host
            live = host._services.registry.live  # noqa: SLF001 - what is public is made anew for each look
            for session in [one for one in self._unseen if self._compare(live.get(one))]:
                del self._unseen[session]

    def settled(self, world: World) -> None:
        """Judge what could not be compared because the agent has seen less than there is."""
        self.look(world)
        for session in self._unseen:
            agent = next((each for each in world.host.agents if each.id == session), None)
            state = None if agent is None else agent.session.confirmed_state
            if state is not None:
                self.fail(
                    f"{session} holds {state.length} events for confirmed; its log has "
                    f"{self._books.sessions[session].length}"
                )

    def _compare(self, agent: Agent | None) -> bool:
        """Return whether there was something to compare."""
        state = None if agent is None else agent.session.confirmed_state
        if agent is None or state is None:
            return False
        ledger = self._books.sessions[agent.id]
        if state.length > ledger.length:
            self.fail(f"{agent.id} holds {state.length} events for confirmed; its log has {ledger.length}")
        if state.length < ledger.length:
            return False
        if not _agree(state, ledger):
            held, logged = _held(state), _logged(ledger)
            differing = [name for name in logged if held[name] != logged[name]]
            self.fail(
                f"{agent.id}: after {ledger.length} events the agent holds "
                f"{ {name: held[name] for name in differing} }; its log says "
                f"{ {name: logged[name] for name in differing} }"
            )
        agent.session.rest()
        return True


def _agree(state: SessionState, ledger: Ledger) -> bool:
    """Return whether both are the same, with little ado: most are, and most hold little."""
    if (state.turns, state.has_reason_to_run) != (ledger.turns, ledger.is_runnable):
        return False
    if state.redelivery is None and ledger.redelivery is None:
        inbox = state.inbox
        if not (len(inbox) or inbox.waking or ledger.next_step or ledger.next_turn or ledger.waking):
            return _held_turn(state) == _logged_turn(ledger) and _held_reminders(state) == _logged_reminders(ledger)
    return _held(state) == _logged(ledger)


def _held(state: SessionState) -> dict[str, Any]:
    left = state.redelivery
    return {
        "turns": state.turns,
        "turn": _held_turn(state),
        "redelivery": None if left is None else (left.attempt, [message.id for message in left.messages]),
        "runnable": state.has_reason_to_run,
        "next-step": [(message.id, message.text) for message in state.inbox.next_step],
        "next-turn": [(message.id, message.text) for message in state.inbox.next_turn],
        "waking": state.inbox.waking,
        "reminders": _held_reminders(state),
    }


def _held_turn(state: SessionState) -> tuple[int, int, str | None, list[str]] | None:
    turn = state.turn
    if turn is None:
        return None
    return turn.number, turn.attempt, turn.abort_cause, [message.id for message in turn.claimed]


def _held_reminders(state: SessionState) -> list[tuple[str, int]]:
    return [(reminder.id, to_millis(reminder.scheduled_at)) for reminder in state.reminders]


def _logged(ledger: Ledger) -> dict[str, Any]:
    left = ledger.redelivery
    return {
        "turns": ledger.turns,
        "turn": _logged_turn(ledger),
        "redelivery": None if left is None else (left[1], [message.id for message in left[0]]),
        "runnable": ledger.is_runnable,
        "next-step": [(message.id, message.text) for message in ledger.next_step.values()],
        "next-turn": [(message.id, message.text) for message in ledger.next_turn.values()],
        "waking": ledger.waking,
        "reminders": _logged_reminders(ledger),
    }


def _logged_turn(ledger: Ledger) -> tuple[int, int, str | None, list[str]] | None:
    turn = ledger.turn
    if turn is None:
        return None
    return turn.number, turn.attempt, turn.cause, [message.id for message in turn.claimed]


def _logged_reminders(ledger: Ledger) -> list[tuple[str, int]]:
    return [(reminder.id, reminder.target) for reminder in ledger.reminders.values()]
