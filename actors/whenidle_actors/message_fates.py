"""What became of messages, and so of the deliveries of tasks: read from the logs of their sessions (SPEC 6.8).

A receipt is written with the message, before any turn has seen it. What the turn made of it is in the
session's log and is joined to the receipt when somebody asks: there is no second record for a crash to leave behind.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

import trio

from whenidle_actors.errors import InvalidArgument, StoreDamaged, UnknownSession
from whenidle_clock import format_instant, from_millis
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.message_history import MessageHistories, MessageHistory
from whenidle_protocol.task_frame_reading import delivered_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from whenidle_actors.stores.base import SessionSlice, Store
    from whenidle_actors.stores.task_rows import Receipt
    from whenidle_protocol.events import Message

_PIECE = 500
"""Events looked at between two checkpoints."""

_FIRST_END = 250
"""Events of the end of a log that are read first: some eighty turns."""

_LONGER = 4
"""How much longer the next end is: a log that has to be read whole costs a third more than at once."""

_BEHIND_ALL = MAX_SAFE_INTEGER

K = TypeVar("K")


async def history_of(store: Store, session_id: str, message_id: str) -> MessageHistory | None:
    """Return what became of a message so far; None if the session's log has no such message.

    Raises:
        UnknownSession, StoreError: as `Store.read`.
    """
    found = await _find(store, session_id, lambda message: [message_id] if message.id == message_id else [], 1)
    return found.get(message_id)


async def delivery_outcomes(store: Store, receipts: Sequence[Receipt]) -> tuple[MessageHistory | None, ...]:
    """Return what became of the message of each receipt so far, in the order given.

    Of the log of each session that was delivered to, the end is read that holds the messages, and not much more. None
    stands for a message that cannot be found: its session is gone, or that part of its log is damaged.

    Raises:
        StoreError: the store cannot be read.
    """
    sessions = [str(json.loads(receipt.data).get("targetSessionId")) for receipt in receipts]
    by_session: dict[str, list[Receipt]] = {}
    for session_id, receipt in zip(sessions, receipts, strict=True):
        by_session.setdefault(session_id, []).append(receipt)
    told = {session_id: await _told(store, session_id, group) for session_id, group in by_session.items()}
    return tuple(told[session_id].get(_key(receipt)) for session_id, receipt in zip(sessions, receipts, strict=True))


async def _told(store: Store, session_id: str, receipts: Iterable[Receipt]) -> dict[tuple[str, str], MessageHistory]:
    wanted = {_key(receipt) for receipt in receipts}
    try:
        return await _find(store, session_id, lambda message: wanted.intersection(delivered_by(message)), len(wanted))
    except (UnknownSession, InvalidArgument, StoreDamaged):
        return {}


def _key(receipt: Receipt) -> tuple[str, str]:
    return receipt.task_id, format_instant(from_millis(receipt.scheduled_millis))


async def _find(
    store: Store, session_id: str, keys_of: Callable[[Message], Iterable[K]], wanted: int
) -> dict[K, MessageHistory]:
    """Return what became of messages by the keys they are wanted for, of which there are so many.

    What becomes of a message stands behind it in the log, so that the log's end is enough if they are all in it. Ends
    that are read are longer and longer, until one is, or there is no more.
    """
    length = (await store.read(session_id, _BEHIND_ALL)).length
    size = _FIRST_END
    while True:
        part = await store.read(session_id, max(0, length - size))
        message_ids: dict[K, str] = {}

        def is_wanted(message: Message, message_ids: dict[K, str] = message_ids) -> bool:
            keys = dict.fromkeys(keys_of(message), message.id)
            message_ids.update(keys)
            return bool(keys)

        histories = MessageHistories(is_wanted)
        await _follow(histories, part)
        if len(message_ids) == wanted or part.start <= part.header.seed_length:
            return {key: histories.found[message_id] for key, message_id in message_ids.items()}
        size *= _LONGER


async def _follow(histories: MessageHistories, part: SessionSlice) -> None:
    """Go through a log, however long, without holding the loop; what a fork inherited is another session's."""
    try:
        for number, record in enumerate(part.records[max(0, part.header.seed_length - part.start) :], 1):
            histories.apply(record)
            if number % _PIECE == 0:
                await trio.lowlevel.checkpoint()
    except CorruptLog as error:
        raise StoreDamaged(f"session {part.header.id!r}: {error}") from error
