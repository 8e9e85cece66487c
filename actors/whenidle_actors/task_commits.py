"""Putting what is due into inboxes: message, task, receipt and session in one commit (SPEC 4, 6.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import attrs

from whenidle_actors.errors import CommitUncertain
from whenidle_actors.session import opening
from whenidle_actors.stores.base import Batch, SessionHeader
from whenidle_actors.task_pieces import records_in_pieces
from whenidle_actors.task_rows import is_written
from whenidle_protocol import turn_changes
from whenidle_protocol.events import Lane, Source

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from whenidle_actors.session import Journal, Session
    from whenidle_actors.stores.base import Append
    from whenidle_protocol.events import Message
    from whenidle_protocol.session_state import SessionState
    from whenidle_protocol.task_admission import Admission
    from whenidle_protocol.task_delivery import Due
    from whenidle_protocol.turn_changes import Decided

    Choose: TypeAlias = Callable[[], Awaitable[Admission]]
    """Reads the tasks as they are and decides what of them is to enter the inbox now."""
    Note: TypeAlias = Callable[[Admission], None]
    """Told of what was admitted as soon as that is durable, whatever becomes of the caller."""


def delivery_of(text: str) -> Callable[[SessionState], Decided[Message]]:
    """Return the decision that puts a message about tasks into an inbox."""
    return lambda state: turn_changes.insert(state, Lane.NEXT_TURN, text, Source.SCHEDULE, wake=True)


async def admit_to(session: Session, journal: Journal, admission: Admission, note: Note) -> Admission:
    """Put `admission` into the inbox of a session, and return it; to be called in the session's agent's mailbox.

    A commit of unknown outcome is read back (SPEC 3.2).

    Raises:
        TaskConflict: a task was written since it was read; nothing changed.
        StoreError: as `Store.commit`.
    """
    beside = await records_in_pieces(admission)
    text = admission.text
    try:
        if text is not None:
            await session.decide(delivery_of(text), beside=beside)
        elif beside.tasks:
            await journal.commit(Batch(tasks=beside.tasks))
    except CommitUncertain:
        if not await is_written(journal.store, beside.tasks[0]):
            raise
    note(admission)
    return admission


async def admit_to_new(journal: Journal, admission: Admission, note: Note) -> Admission:
    """Create the session that `admission` goes to, with the message in its inbox, and return the admission.

    A commit of unknown outcome is read back (SPEC 3.2).

    Raises:
        SessionExists: there is that session already; nothing changed.
        TaskConflict, StoreError: as `admit_to`.
    """
    beside = await records_in_pieces(admission)
    batch = Batch(tasks=beside.tasks, receipts=beside.receipts)
    if admission.text is not None:
        header, append = _first_message(_maker(admission), admission.text, journal)
        batch = attrs.evolve(batch, created=(header,), appends=(append,))
    try:
        if beside.tasks:
            await journal.commit(batch)
    except CommitUncertain:
        if not await is_written(journal.store, beside.tasks[0]):
            raise
    note(admission)
    return admission


def creates_session(admission: Admission) -> bool:
    """Return whether what is to be delivered brings its session along if there is none yet."""
    return any(due.creates for due in admission.delivered)


def _maker(admission: Admission) -> Due:
    return next(due for due in admission.delivered if due.creates)


def _first_message(due: Due, text: str, journal: Journal) -> tuple[SessionHeader, Append]:
    target = due.task.target
    header = SessionHeader(due.session_id, due.decided_at, cwd=target.cwd, preset=target.preset)
    append, _ = opening(journal, header, delivery_of(text))
    return header, append
