"""Management calls in flight, and what was durable at some moment while they were (SPEC 5.6).

An answer is right if it is what the log said at one moment between the beginning of the call and its end. So each
call in flight collects every state that there was meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Reminder, Row
    from whenidle_lab.invariants.ledger import Ledger
    from whenidle_lab.invariants.walls import Moment
    from whenidle_lab.trace import Happening

Reminders: TypeAlias = "list[tuple[Mapping[str, Any], int]]"
"""What was created, and the next target, of each active reminder, in the order of creation."""


@attrs.define(eq=False)
class Call:
    """A tool call."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    began: Moment
    reminders: list[Reminders] = attrs.Factory(list["Reminders"])
    """Of the agent's session, at every moment so far."""
    tasks: list[dict[str, Row]] = attrs.Factory(list["dict[str, Row]"])
    """Of the host, at every moment so far."""
    made: dict[str, tuple[Reminder, Moment]] = attrs.Factory(dict[str, "tuple[Reminder, Moment]"])
    """Reminders that were created meanwhile, and when the commit of each was handed in."""
    deleted: set[str] = attrs.Factory(set[str])
    """Reminders and tasks that were deleted meanwhile."""
    written: dict[str, list[Row]] = attrs.Factory(dict[str, "list[Row]"])
    """Versions of tasks that were written meanwhile."""


class Calls:
    """The calls in flight in the process that lives now."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._open: dict[int, Call] = {}

    def take(self, happening: Happening) -> Call | None:
        """Follow the run, and return the call that is over with this, if one is."""
        what = happening.what
        if what is What.COMMIT_DURABLE:
            if self._open:
                self._follow()
        elif what is What.CALL_BEGAN:
            self._begin(happening)
        elif what is What.CALL_ENDED:
            return self._open.pop(happening.detail["call"], None)
        else:  # a process began
            self._open.clear()
        return None

    def _begin(self, happening: Happening) -> None:
        books, detail = self._books, happening.detail
        call = Call(happening.agent, detail["tool"], detail["arguments"], books.walls.moment(happening))
        ledger = books.sessions.get(happening.agent)
        call.reminders.append([] if ledger is None else _reminders(ledger))
        call.tasks.append(dict(books.tasks))
        self._open[detail["call"]] = call

    def _follow(self) -> None:
        commit = self._books.commit
        changes = commit.made or commit.deleted or commit.dispatched
        if not changes and not commit.written:
            return
        tasks = dict(self._books.tasks) if commit.written else None
        for call in self._open.values():
            if changes and call.agent in commit.appended:
                self._follow_reminders(call)
            if tasks is not None:
                call.tasks.append(tasks)
                for each in commit.written:
                    if each.after is None:
                        call.deleted.add(each.id)
                    else:
                        call.written.setdefault(each.id, []).append(each.after)

    def _follow_reminders(self, call: Call) -> None:
        commit = self._books.commit
        call.reminders.append(_reminders(self._books.sessions[call.agent]))
        call.deleted.update(identity for session, identity in commit.deleted if session == call.agent)
        for session, reminder in commit.made:
            if session == call.agent:
                call.made[reminder.id] = (reminder, commit.began)


def _reminders(ledger: Ledger) -> Reminders:
    return [(reminder.fields, reminder.target) for reminder in ledger.reminders.values()]
