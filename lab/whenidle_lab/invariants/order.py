"""What turns are given, and in which order (SPEC 2.2, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.trace import Happening


class InboxOrder(Invariant):
    """Turns take messages by the rules of the inbox, are told all of them, and count their attempts.

    A turn takes all of next-step and the first of next-turn, or what an interrupted turn left, marked as
    redelivered and with the next number of attempt. A step takes all of next-step. Each message is handed to
    the turn that took it once.
    """

    name = "inbox-order"
    listens: ClassVar[frozenset[What]] = frozenset({What.COMMIT_DURABLE, What.TURN_BEGAN, What.STEPPED})

    def __init__(self, books: Books) -> None:
        self._books = books
        self._handed: dict[tuple[str, int], set[str]] = {}
        """What each turn was handed so far."""

    def happened(self, happening: Happening) -> None:
        """Judge what a turn takes, or is given."""
        if happening.what is What.TURN_BEGAN:
            self._check_given(happening)
            return
        if happening.what is What.STEPPED:
            self._check_step(happening)
            return
        for started in self._books.commit.started:
            if (started.claimed, started.attempt) != (started.due, started.due_attempt):
                self.fail(
                    f"turn {started.turn} of {started.session} takes {started.claimed} as attempt {started.attempt}; "
                    f"due are {started.due} as attempt {started.due_attempt}"
                )

    def _check_given(self, happening: Happening) -> None:
        ledger, detail = self._books.sessions.get(happening.agent), happening.detail
        turn = None if ledger is None else ledger.turn
        if turn is None:
            return  # for `one-at-a-time` to complain of
        taken = [message.id for message in turn.claimed]
        given = (detail["messages"], detail["attempt"], detail["redelivered"])
        self._handed[happening.agent, detail["turn"]] = set(detail["messages"])
        if given != (taken, turn.attempt, turn.attempt > 1):
            self.fail(
                f"turn {turn.number} of {happening.agent} has taken {taken} as attempt {turn.attempt}; its function is "
                f"given {given[0]} as attempt {given[1]}, {'' if given[2] else 'not '}redelivered"
            )

    def _check_step(self, happening: Happening) -> None:
        agent, number, messages = happening.agent, happening.detail["turn"], happening.detail["messages"]
        handed = self._handed.setdefault((agent, number), set())
        again = sorted(handed.intersection(messages))
        if again:
            self.fail(f"turn {number} of {agent} is handed {again} once more")
        ledger = self._books.sessions.get(agent)
        turn = None if ledger is None else ledger.turn
        taken = {message.id for message in turn.claimed} if turn is not None and turn.number == number else set[str]()
        if not taken.issuperset(messages):
            self.fail(f"turn {number} of {agent} is handed {messages}; it has taken {sorted(taken)}")
        handed.update(messages)
