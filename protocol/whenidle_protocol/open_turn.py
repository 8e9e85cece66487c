"""A turn as the log knows it while it is open, and what an interrupted one leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from whenidle_protocol.events import Message


@attrs.frozen
class OpenTurn:
    """A turn that has started and not ended."""

    number: int
    claimed: tuple[Message, ...]
    """What it has taken so far, in order; empty for a turn of the inherited prefix."""
    attempt: int = 1
    """How often these messages have been given to a turn, this time included."""
    abort_cause: str | None = None
    """The cause of the first cancel accepted for it; None while it has not been cancelled."""


@attrs.frozen
class Redelivery:
    """The messages of an interrupted turn, which the next turn takes again (SPEC 4)."""

    messages: tuple[Message, ...]
    attempt: int
    """The attempt number of the turn that takes them."""
