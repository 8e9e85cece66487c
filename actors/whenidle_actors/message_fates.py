"""What became of messages, and so of the deliveries of tasks: read from the logs of their sessions (SPEC 6.8).

A receipt is written with the message, before any turn has seen it. What the turn made of it is in the
session's log and is joined to the receipt when somebody asks: there is no second record for a crash to leave behind.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio

from whenidle_actors.errors import InvalidArgument, StoreDamaged, UnknownSession
from whenidle_clock import format_instant, from_millis
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.message_history import MessageHistories, MessageHistory
from whenidle_protocol.task_frame_reading import delivered_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from whenidle_actors.stores.base import SessionSlice, Store
    from whenidle_actors.stores.task_rows import Receipt
    from whenidle_protocol.events import Message

_PIECE = 500
"""Events looked at between two checkpoints."""


async def history_of(store: Store, session_id: str, message_id: str) -> MessageHistory | None:
    """Return what became of a message so far; None if the session's log has no such message.

    Raises:
        UnknownSession, StoreError: as `Store.read`.
    """
    histories = MessageHistories(lambda message: message.id == message_id)
    await _follow(histories, await store.read(session_id))
    return histories.found.get(message_id)


async def delivery_outcomes(store: Store, receipts: Sequence[Receipt]) -> tuple[MessageHistory | None, ...]:
    """Return what became of the message of each receipt so far, in the order given.

    The log of each session that was delivered to is read once, whole. None stands for a message that cannot be
    found: its session is gone, or its log is damaged.

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
    message_ids: dict[tuple[str, str], str] = {}

    def is_wanted(message: Message) -> bool:
        delivered = wanted.intersection(delivered_by(message))
        message_ids.update(dict.fromkeys(delivered, message.id))
        return bool(delivered)

    histories = MessageHistories(is_wanted)
    try:
        await _follow(histories, await store.read(session_id))
    except (UnknownSession, InvalidArgument, StoreDamaged):
        return {}
    return {key: histories.found[message_id] for key, message_id in message_ids.items()}


def _key(receipt: Receipt) -> tuple[str, str]:
    return receipt.task_id, format_instant(from_millis(receipt.scheduled_millis))


async def _follow(histories: MessageHistories, whole: SessionSlice) -> None:
    """Go through a log, however long, without holding the loop; what a fork inherited is another session's."""
    try:
        for number, record in enumerate(whole.records[whole.header.seed_length :], 1):
            histories.apply(record)
            if number % _PIECE == 0:
                await trio.lowlevel.checkpoint()
    except CorruptLog as error:
        raise StoreDamaged(f"session {whole.header.id!r}: {error}") from error
