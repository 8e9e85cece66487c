"""One thing at a time (SPEC 2.1, 2.3, 5.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.trace import Happening


class OneAtATime(Invariant):
    """Turns and maintenance of one agent never overlap, claims exclude each other, deliveries are made in a claim.

    A turn function runs while its turn is open in the log, and at most once for each turn. An agent that does
    any of that stays in memory.
    """

    name = "one-at-a-time"
    listens: ClassVar[frozenset[What]] = frozenset(
        {What.TURN_BEGAN, What.MAINTENANCE_BEGAN, What.HOST, What.COMMIT_DURABLE}
    )

    def __init__(self, books: Books) -> None:
        self._books = books
        self._ran: set[tuple[str, int]] = set()

    def happened(self, happening: Happening) -> None:
        """Judge what begins."""
        if happening.what is What.COMMIT_DURABLE:
            self._check_commit()
        elif happening.what is not What.HOST or happening.detail["event"] == "maintenance-started":
            self._check_begin(happening.agent)
        elif happening.detail["event"] == "agent-passivated":
            self._check_quiet(happening.agent)
        if happening.what is What.TURN_BEGAN:
            self._check_turn(happening)

    def _check_begin(self, agent: str) -> None:
        player = self._books.stage.of(agent)
        ledger = self._books.sessions.get(agent)
        if len(player.turns) + max(len(player.tasks), len(player.claims)) > 1:
            self.fail(
                f"agent {agent} is doing several things: turns {player.turns}, "
                f"{len(player.claims)} claims, {len(player.tasks)} maintenance tasks"
            )
        if player.claims and ledger is not None and ledger.turn is not None:
            self.fail(f"agent {agent} is claimed while turn {ledger.turn.number} is open in its log")

    def _check_quiet(self, agent: str) -> None:
        player = self._books.stage.of(agent)
        if player.is_busy or player.claims:
            self.fail(
                f"agent {agent} is dropped from memory while it is in the turns {player.turns}, with "
                f"{len(player.claims)} claims and {len(player.tasks)} maintenance tasks"
            )

    def _check_turn(self, happening: Happening) -> None:
        agent, turn = happening.agent, happening.detail["turn"]
        ledger = self._books.sessions.get(agent)
        if (agent, turn) in self._ran:
            self.fail(f"turn {turn} of {agent} is run twice")
        self._ran.add((agent, turn))
        if ledger is None or ledger.turn is None or ledger.turn.number != turn:
            self.fail(f"turn {turn} of {agent} runs and is not open in its log")

    def _check_commit(self) -> None:
        commit, stage = self._books.commit, self._books.stage
        if commit.elsewhere or not (commit.announced or commit.started or commit.ended):
            return
        for started in commit.started:
            player = stage.of(started.session)
            if player.claims or player.tasks or (player.turns and player.turns != [started.turn]):
                self.fail(
                    f"turn {started.turn} of {started.session} takes messages while the agent is at something else"
                )
        for ended in commit.ended:
            if stage.of(ended.session).turns:
                self.fail(f"turn {ended.turn} of {ended.session} has its outcome while its function still runs")
        delivered = {each.session for each in commit.announced} - set(commit.created)
        for session in sorted(delivered):
            player, ledger = stage.of(session), self._books.sessions[session]
            if player.is_busy or ledger.turn is not None:
                self.fail(f"something is delivered to {session} while the agent is at something else")
            if not player.claims:
                self.fail(f"something is delivered to {session} without a claim on the agent")
