"""What is decided and recorded about very many tasks of one session, so that nobody else waits for it (SPEC 2.9).

The decision is one, at one instant, and so is its commit; only the loop is left to others in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from whenidle_actors.session import Beside
from whenidle_actors.task_rows import records_of
from whenidle_protocol.task_admission import Admission, admit, delivery_order
from whenidle_protocol.task_timing import is_one_shot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from whenidle_protocol.task_delivery import Due, Skipped
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_settings import TaskSettings

PIECE: Final = 40
"""Tasks decided about, read or recorded between two checkpoints: some 4 ms at most."""


async def admit_in_pieces(tasks: Sequence[Task], now: datetime, settings: TaskSettings) -> Admission:
    """Return what `admit` does; with many tasks others run meanwhile. A few take no checkpoint."""
    if len(tasks) <= PIECE:
        return admit(tasks, now, settings)
    ordered = sorted(tasks, key=delivery_order)
    dues: list[Due] = []
    skipped: list[Skipped] = []
    one_shot: tuple[Due, ...] = ()
    for start in range(0, len(ordered), PIECE):
        piece = ordered[start : start + PIECE]
        if one_shot:
            piece = [task for task in piece if not is_one_shot(task.rule)]
        part = admit(piece, now, settings)
        skipped += part.skipped
        if part.delivered and is_one_shot(part.delivered[0].task.rule):
            one_shot = part.delivered
        else:
            dues += part.delivered
        await trio.lowlevel.checkpoint()
    return Admission(one_shot or tuple(dues), tuple(skipped))


async def records_in_pieces(admission: Admission) -> Beside:
    """Return what `records_of` does; with many tasks others run meanwhile. A few take no checkpoint."""
    delivered, skipped = admission.delivered, admission.skipped
    if len(delivered) + len(skipped) <= PIECE:
        return records_of(admission)
    parts: list[Beside] = []
    for start in range(0, len(delivered), PIECE):
        parts.append(records_of(Admission(delivered[start : start + PIECE])))
        await trio.lowlevel.checkpoint()
    for start in range(0, len(skipped), PIECE):
        parts.append(records_of(Admission((), skipped[start : start + PIECE])))
        await trio.lowlevel.checkpoint()
    return Beside(
        tuple(write for part in parts for write in part.tasks),
        tuple(receipt for part in parts for receipt in part.receipts),
    )
