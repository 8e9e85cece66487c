"""What was accepted is not lost (SPEC 3.2, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Ended
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World

_LANES = {"followup": ("next-turn", True), "steer": ("next-step", True), "inject": ("next-step", False)}
"""The lane of a message by the way it was sent, and whether it wakes the agent."""

_DOUBTS = {None, "CommitUncertain", "Defect"}
"""What a caller may be told of a commit that is durable: a defect of the store says nothing about it."""


class NothingLost(Invariant):
    """A commit that was reported done is durable, and so is every message whose sender was given its id.

    One that was reported failed changed nothing, unless it is uncertain or the store has a defect. Each message
    that a turn took is run: by a turn function, or, if the turn was interrupted, by that of a later turn, unless the
    turn was cancelled, or the host has it run at most once.
    """

    name = "nothing-lost"
    listens: ClassVar[frozenset[What]] = frozenset(
        {
            What.COMMIT_DURABLE,
            What.COMMIT_ENDED,
            What.SEND_BEGAN,
            What.SEND_ENDED,
            What.CHANGED,
            What.TURN_BEGAN,
            What.LIFE_BEGAN,
        }
    )

    def __init__(self, books: Books) -> None:
        self._books = books
        self._durable: set[int] = set()
        self._sent: dict[int, tuple[str, str]] = {}
        self._entered: set[tuple[str, int]] = set()
        """Turns whose functions were entered."""
        self._at_least_once = True

    def begin(self, world: World) -> None:  # noqa: ARG002 - the books know it
        """Learn what the host promises about turns that are interrupted."""
        redelivery = self._books.options.get("redelivery")
        self._at_least_once = redelivery is None or redelivery.value == "at-least-once"

    def happened(self, happening: Happening) -> None:
        """Judge what is acknowledged."""
        what, detail = happening.what, happening.detail
        if what is What.COMMIT_DURABLE:
            self._durable.add(detail["commit"])
            for ended in self._books.commit.ended:
                self._check_outcome(ended)
        elif what is What.COMMIT_ENDED:
            self._check_told(detail["commit"], detail["error"])
        elif what is What.SEND_BEGAN:
            self._sent[detail["send"]] = (detail["how"], detail["text"])
        elif what is What.SEND_ENDED:
            self._check_sent(happening)
        elif what is What.CHANGED:
            self._check_changed(happening)
        elif what is What.TURN_BEGAN:
            self._entered.add((happening.agent, detail["turn"]))
        elif what is What.LIFE_BEGAN:
            self._durable.clear()

    def settled(self, world: World) -> None:  # noqa: ARG002 - the books tell
        """Judge what became of every message."""
        for ledger in self._books.sessions.values():
            at_work = [] if ledger.turn is None else ledger.turn.claimed
            left = [] if ledger.redelivery is None else ledger.redelivery[0]
            for message in ledger.messages.values():
                lost = message.is_claimed and not message.is_served and message not in at_work and message not in left
                if lost and self._at_least_once:
                    self.fail(f"message {message.id} of {ledger.session} was taken, and no turn has finished with it")

    def _check_told(self, commit: int, error: str | None) -> None:
        is_durable = commit in self._durable
        self._durable.discard(commit)
        if error is None and not is_durable:
            self.fail(f"commit {commit} is reported done, and is not durable")
        if error not in _DOUBTS and is_durable:
            self.fail(f"commit {commit} is reported failed ({error}), and is durable")

    def _check_sent(self, happening: Happening) -> None:
        detail = happening.detail
        how, text = self._sent.pop(detail["send"])
        if "message" not in detail:
            return
        ledger = self._books.sessions.get(happening.agent)
        message = None if ledger is None else ledger.messages.get(detail["message"])
        if message is None:
            self.fail(f"message {detail['message']} to {happening.agent} was accepted, and is not in its log")
        if (message.lane, message.wake, message.source) != (*_LANES[how], "user"):
            self.fail(f"message {message.id} to {happening.agent} was sent by {how}, and is in {message.lane}")
        if message.text != text:
            self.fail(
                f"message {message.id} to {happening.agent} was sent as {text!r}, and is kept as {message.text!r}"
            )

    def _check_changed(self, happening: Happening) -> None:
        detail, ledger = happening.detail, self._books.sessions.get(happening.agent)
        if detail["error"] is None and detail["how"] == "remove":
            message = None if ledger is None else ledger.messages.get(detail["message"])
            if message is None or not message.is_removed:
                self.fail(f"message {detail['message']} of {happening.agent} is said to be removed, and is not")

    def _check_outcome(self, ended: Ended) -> None:
        entered = (ended.session, ended.turn) in self._entered
        if not entered and ended.outcome in {"completed", "error"}:
            self.fail(f"turn {ended.turn} of {ended.session} is {ended.outcome}, and its function was never entered")
        may_drop = ended.cancelled or not self._at_least_once
        if ended.outcome == "interrupted" and not ended.redeliver and not may_drop:
            ids = [message.id for message in ended.claimed]
            self.fail(f"turn {ended.turn} of {ended.session} was interrupted, and {ids} are not to be redelivered")
