"""The inbox of one agent: two ordered lists of messages it has not taken yet (SPEC 2.2).

An `Inbox` is owned by one `SessionState` and changed in place. Each method either does all it says
or raises and leaves the inbox as it was. An agent whose inbox is empty has none: see `EMPTY`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import attrs

from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import Lane

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whenidle_protocol.events import Message


class Inbox:
    """Pending messages in order, lane by lane."""

    # An ordered dict takes a message from the front, or from anywhere by its id, in constant time.
    __slots__ = ("_next_step", "_next_turn", "waking")

    def __init__(self) -> None:
        self._next_turn: OrderedDict[str, Message] = OrderedDict()
        self._next_step: OrderedDict[str, Message] = OrderedDict()
        self.waking: int = 0
        """How many of the pending messages are a reason to run the agent."""

    def __len__(self) -> int:
        return len(self._next_turn) + len(self._next_step)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._next_turn or message_id in self._next_step

    def __iter__(self) -> Iterator[Message]:
        """Iterate over the next-step messages and then the next-turn messages, each in order."""
        yield from self._next_step.values()
        yield from self._next_turn.values()

    @property
    def next_turn(self) -> tuple[Message, ...]:
        """The messages of which each turn takes one."""
        return tuple(self._next_turn.values())

    @property
    def next_step(self) -> tuple[Message, ...]:
        """The messages the next step takes, all of them."""
        return tuple(self._next_step.values())

    def turn_claim(self) -> tuple[Message, ...]:
        """Return what a turn that starts now takes: all of next-step, then the first of next-turn."""
        first = next(iter(self._next_turn.values()), None)
        return self.next_step if first is None else (*self.next_step, first)

    def insert(self, message: Message) -> None:
        """Append `message` to its lane.

        Raises:
            CorruptLog: a pending message has its id.
        """
        if message.id in self:
            raise CorruptLog(f"inbox/insert: {message.id!r} is pending already")
        lane = self._next_turn if message.lane is Lane.NEXT_TURN else self._next_step
        lane[message.id] = message
        self.waking += message.wake

    def remove(self, ids: Sequence[str], what: str) -> None:
        """Take the messages named by `ids` out; `what` is the event to name in a complaint.

        Raises:
            CorruptLog: one of them is not pending.
        """
        for each in ids:
            if each not in self:
                raise CorruptLog(f"{what}: no message {each!r} is pending")
        for each in ids:
            message = self._next_turn.pop(each, None) or self._next_step.pop(each)
            self.waking -= message.wake

    def replace(self, message_id: str, text: str) -> None:
        """Give a pending message a new text; it keeps its place.

        Raises:
            CorruptLog: it is not pending.
        """
        for lane in (self._next_turn, self._next_step):
            if message_id in lane:
                lane[message_id] = attrs.evolve(lane[message_id], text=text)
                return
        raise CorruptLog(f"inbox/replace: no message {message_id!r} is pending")


EMPTY: Final = Inbox()
"""What every agent with an empty inbox shares; nothing ever changes it."""
