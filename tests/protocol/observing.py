"""What tests compare of a session's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_protocol.session_state import index_of

if TYPE_CHECKING:
    from whenidle_protocol.session_state import SessionState


def seen(state: SessionState) -> dict[str, Any]:
    """Everything a state says, to compare before and after."""
    return {
        "length": state.length,
        "turns": state.turns,
        "turn": state.turn,
        "redelivery": state.redelivery,
        "awake": state.awake,
        "next_turn": state.inbox.next_turn,
        "next_step": state.inbox.next_step,
        "waking": state.inbox.waking,
        "reminders": list(state.reminders),
        "index": index_of(state),
    }
