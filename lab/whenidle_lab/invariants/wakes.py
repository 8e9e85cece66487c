"""No wake is lost: once faults have stopped, what is to happen happens (SPEC 2.2, 5.8, 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from whenidle_lab.invariants.books import START
from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.ledger import Ledger
    from whenidle_lab.invariants.stage import Player
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World

_NS: Final = 1_000_000_000


class NoWakeLost(Invariant):
    """When everything had time to come to rest, nothing due is undelivered at an idle agent, and nobody sleeps over it.

    No turn is open that nobody runs, no message that wakes waits at an agent that does nothing, no reminder or task
    is overdue, no task has failed whose session exists. Time enough is half of the scenario's bound: without
    faults a delivery takes no time, and a step that was not announced is noticed after a minute.

    An agent that was disposed and not restored in the process that lives now, or that was given up, need not run.
    """

    name = "no-wake-lost"
    listens: ClassVar[frozenset[What]] = frozenset({What.COMMIT_DURABLE})

    def __init__(self, books: Books) -> None:
        self._books = books
        self._has_slots = False
        self._now = START

    def begin(self, world: World) -> None:  # noqa: ARG002 - the books know it
        """Learn whether turns have to wait for one another."""
        self._has_slots = self._books.options.get("max_concurrent_turns") is not None

    def happened(self, happening: Happening) -> None:  # noqa: ARG002 - the books have read it
        """Judge a task that has failed."""
        books = self._books
        for written in books.commit.written:
            if written.before is None or written.after is None:
                continue
            if written.after.data.get("failures", 0) > written.before.data.get("failures", 0):
                session = written.after.data["lastFailure"]["targetSessionId"]
                ledger = books.sessions.get(session)
                if ledger is not None and ledger.created_ns < books.commit.began.ns:
                    self.fail(f"task {written.id} has failed for want of session {session}, which exists")

    def settled(self, world: World) -> None:
        """Judge what has not happened."""
        self._now = self._books.walls.present(world)
        patience_ns = int(world.scenario.bound * _NS) // 2
        for session, ledger in self._books.sessions.items():
            player = self._books.stage.of(session)
            if not player.is_gone and not player.is_faulted:
                self._check_turns(ledger, player, patience_ns)
                if _has_reminders(world, session):
                    self._check_reminders(ledger, player, patience_ns)
        if any(suite.name == "tasks" for suite in world.host.suites):
            self._check_tasks(patience_ns)

    def _check_turns(self, ledger: Ledger, player: Player, patience_ns: int) -> None:
        waits = self._has_slots and any(other.turns for other in self._books.stage.players.values())
        if waits or self._rest(ledger, player) <= patience_ns:
            return
        if ledger.turn is not None:
            self.fail(f"turn {ledger.turn.number} of {ledger.session} is open, and nobody runs it")
        if ledger.is_runnable:
            self.fail(f"{ledger.session} has a reason to run and does not: {ledger.waking} messages wait that wake it")

    def _check_reminders(self, ledger: Ledger, player: Player, patience_ns: int) -> None:
        for reminder in ledger.reminders.values():
            overdue_ns = min(self._overdue(reminder.target), self._rest(ledger, player))
            if overdue_ns > patience_ns:
                self.fail(
                    f"reminder {reminder.id} of {ledger.session} is due since {reminder.target}, "
                    f"and has not been delivered for {overdue_ns / _NS:g} s in which the agent was idle"
                )

    def _check_tasks(self, patience_ns: int) -> None:
        books = self._books
        for identity, row in books.tasks.items():
            if row.next is None:
                continue
            overdue_ns = self._overdue(row.next)
            ledger = None if row.session is None else books.sessions.get(row.session)
            if ledger is not None:
                player = books.stage.of(ledger.session)
                overdue_ns = 0 if player.is_faulted else min(overdue_ns, self._rest(ledger, player))
            if overdue_ns > patience_ns:
                self.fail(f"task {identity} is due since {row.next}, and not delivered for {overdue_ns / _NS:g} s")

    def _overdue(self, target: int) -> int:
        """Return for how long the wall has shown `target` or later, since faults have stopped; in nanoseconds."""
        now = self._now
        passed_ns = self._books.walls.passed(target, now)
        if passed_ns is None:
            return 0
        healed = self._books.healed
        return now.ns - max(passed_ns, 0 if healed is None else healed.ns)

    def _rest(self, ledger: Ledger, player: Player) -> int:
        """Return for how long nothing has happened to an agent, in nanoseconds; 0 if it does something."""
        if player.is_busy or player.claims:
            return 0
        healed = self._books.healed
        return self._now.ns - max(ledger.changed_ns, player.rested_ns, 0 if healed is None else healed.ns)


def _has_reminders(world: World, session: str) -> bool:
    """Return whether reminders are delivered to an agent; one that is not live would be restored for them."""
    agent = next((each for each in world.host.agents if each.id == session), None)
    return any(suite.name == "reminders" for suite in (world.host.suites if agent is None else agent.suites))
