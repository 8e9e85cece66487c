"""What the reminder tools and deliveries do to a session, as decisions: state in, events and an answer out.

Message and dispatch are made together here, so that they are one commit (SPEC 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_protocol.events import Lane, Message, ScheduleChanged, Source
from whenidle_protocol.framing import frame
from whenidle_protocol.reminders import Batch, Decision, OneShot, decide, dispatches
from whenidle_protocol.schedule_change import Create, Delete, encode_change
from whenidle_protocol.tools import delete_answer, make_reminder, reminder_answer

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_protocol.schedule_change import Change
    from whenidle_protocol.session_state import SessionState
    from whenidle_protocol.tools import CreateRequest, DeleteRequest
    from whenidle_protocol.turn_changes import Decided


def create(state: SessionState, request: CreateRequest, now: datetime) -> Decided[dict[str, Any]]:
    """Create the reminder that is asked for at `now`.

    Raises:
        ToolError: `corrupt_schedule_log`, `not_future` or `time_out_of_range`.
    """
    state.reminders.check()
    record = make_reminder(request, state.reminders.next_id(), now)
    event = _change(Create(record))
    return (event,), reminder_answer(record, now, event.payload["schedule"])


def delete(state: SessionState, request: DeleteRequest) -> Decided[dict[str, Any]]:
    """Delete the reminder, or say that no active one has that id.

    Raises:
        ToolError: `corrupt_schedule_log`.
    """
    state.reminders.check()
    if request.id not in state.reminders:
        return (), delete_answer(request.id, deleted=False)
    return (_change(Delete(request.id)),), delete_answer(request.id, deleted=True)


def deliver(state: SessionState, now: datetime) -> Decided[Decision]:
    """Put what is due at `now` into the inbox, one one-shot or one batch (SPEC 5.8)."""
    decision = decide(state.reminders, now)
    if not isinstance(decision, OneShot | Batch):
        return (), decision
    message = Message(f"m{state.length}", Lane.NEXT_TURN, True, frame(decision), Source.SCHEDULE)  # noqa: FBT003 - it wakes the agent
    return (message, *(_change(dispatch) for dispatch in dispatches(decision))), decision


def _change(change: Change) -> ScheduleChanged:
    return ScheduleChanged(encode_change(change), change)
