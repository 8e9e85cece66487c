"""The log has the form it must have, whatever it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from whenidle_lab.invariants.frames import millis
from whenidle_lab.invariants.ledger import Malformed
from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Row
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World


class LogWellFormed(Invariant):
    """Events are numbered without gaps and each can follow what came before; what stores index agrees with it.

    A turn starts when none is open and ends once; ids of messages are unique while they are not done with, ids of
    reminders for ever; nothing is taken, removed, delivered or deleted that is not there; versions of tasks rise.
    It keeps the books for all other invariants, and therefore comes first.
    """

    name = "log-well-formed"
    listens: ClassVar[frozenset[What]] = frozenset(
        {
            What.LIFE_BEGAN,
            What.LIFE_ENDED,
            What.CLOCK,
            What.FAULTS_STOPPED,
            What.COMMIT_BEGAN,
            What.COMMIT_DURABLE,
            What.COMMIT_ENDED,
            What.READ_FAILED,
            What.TURN_BEGAN,
            What.TURN_ENDED,
            What.MAINTENANCE_BEGAN,
            What.MAINTENANCE_ENDED,
            What.WAIT_BEGAN,
            What.WAIT_ENDED,
            What.HOST,
        }
    )

    def __init__(self, books: Books) -> None:
        self._books = books
        self._enter = books.handlers

    def begin(self, world: World) -> None:
        """Learn what the host is asked for."""
        self._books.begin(world)

    def happened(self, happening: Happening) -> None:
        """Enter it in the books."""
        try:
            self._enter[happening.what](happening)
        except Malformed as error:
            self.fail(str(error))
        if happening.what is What.COMMIT_DURABLE:
            self._check_indexes(happening)

    def _check_indexes(self, happening: Happening) -> None:
        for append in happening.detail["appends"]:
            ledger = self._books.sessions[append["session"]]
            index = (ledger.due, ledger.turn is not None or ledger.is_runnable)
            if index != (append["due"], append["runnable"]):
                self.fail(
                    f"session {ledger.session}: the store is told that the earliest target is {append['due']} and "
                    f"that it is {'' if append['runnable'] else 'not '}to run; its log says {index}"
                )
        for write in self._books.commit.written:
            if write.after is not None:
                self._check_columns(write.id, write.after)

    def _check_columns(self, identity: str, row: Row) -> None:
        data: Mapping[str, object] = row.data
        active = data["status"] == "active"
        said = (
            data["id"],
            millis(str(data["updatedAt"])),
            millis(str(data["scheduledAt"])) if active else None,
            row.data["target"].get("sessionId"),
        )
        if said != (identity, row.version, row.next, row.session):
            self.fail(
                f"task {identity}: the store is told version {row.version}, next occurrence {row.next} and session "
                f"{row.session}; the task itself says {said[1:]}"
            )
