"""`when_idle` keeps its word (SPEC 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Message
    from whenidle_lab.invariants.ledger import Ledger
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World


class WhenIdle(Invariant):
    """When `when_idle` returns, the agent is idle at that moment; and it returns, or raises, in the end.

    Idle means that no turn is open, nothing is claimed, and the log gives no reason to run. A message that its
    sender has not been told to be accepted does not count yet.
    """

    name = "when-idle"
    listens: ClassVar[frozenset[What]] = frozenset({What.SEND_ENDED, What.WAIT_ENDED})

    def __init__(self, books: Books) -> None:
        self._books = books
        self._accepted: set[tuple[str, str]] = set()

    def happened(self, happening: Happening) -> None:
        """Judge a wait that is over."""
        if happening.what is What.SEND_ENDED:
            self._accepted.add((happening.agent, happening.detail.get("message", "")))
        elif happening.detail["error"] is None:
            self._check_idle(happening.agent)

    def settled(self, world: World) -> None:  # noqa: ARG002 - the books tell
        """Judge the waits that are not over."""
        healed = self._books.healed
        for session, player in self._books.stage.players.items():
            left = [wait for wait, (_, since_ns) in player.waits.items() if healed is None or since_ns <= healed.ns]
            if left:
                self.fail(f"the waits {left} until {session} is idle have not returned")

    def _check_idle(self, agent: str) -> None:
        player, ledger = self._books.stage.of(agent), self._books.sessions[agent]
        if player.is_busy or player.claims or ledger.turn is not None:
            self.fail(
                f"when_idle of {agent} returns while it has {len(player.claims)} claims and is in the turns "
                f"{player.turns or ([] if ledger.turn is None else [ledger.turn.number])}"
            )
        reason = self._reason(ledger)
        if reason:
            self.fail(f"when_idle of {agent} returns although it is to run: {reason}")

    def _reason(self, ledger: Ledger) -> str:
        if ledger.redelivery is not None:
            return "what an interrupted turn left is to be redelivered"
        if not ledger.is_runnable or not any(self._is_known(ledger, message) for message in ledger.wakers):
            return ""
        for message in [*ledger.next_step.values(), *ledger.next_turn.values()]:
            if message.wake and self._is_known(ledger, message):
                return f"message {message.id} waits"
        return ""

    def _is_known(self, ledger: Ledger, message: Message) -> bool:
        """Return whether the host must have taken note of a message: it has delivered it, or told its sender so."""
        if message.source == "schedule" and not message.is_foreign:
            return True
        return (ledger.session, message.id) in self._accepted
