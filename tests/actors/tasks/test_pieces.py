"""Very many tasks of one session: one decision in pieces, between which others run."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.protocol.tasks.worlds import kept
from whenidle_actors import task_pieces, task_pursuit
from whenidle_actors.task_pieces import PIECE, admit_in_pieces, records_in_pieces
from whenidle_actors.task_rows import records_of
from whenidle_protocol.task_admission import admit
from whenidle_protocol.task_settings import TaskSettings

from .worlds import TaskWorld, at, every, once, seconds, settled

if TYPE_CHECKING:
    from whenidle_protocol.task_record import Task


def tasks_of(kinds: str) -> list[Task]:
    """Return a task for each letter, due in reverse order: one-shot `o`, recurring `r`, or too late `s`."""
    made: list[Task] = []
    for number, kind in enumerate(kinds):
        due = at(len(kinds) - number)
        rule = once(len(kinds) - number) if kind == "o" else every(86_400)
        late = 1 if kind == "s" else None
        made.append(
            kept(
                id=f"task-{number}",
                rule=rule,
                scheduled_at=due,
                created_at=at(0),
                updated_at=at(0),
                catch_up_seconds=late,
            )
        )
    return made


@pytest.mark.parametrize(
    "kinds", ["", "r", "o" * 3, "r" * 90, "rs" * 60, "o" * 90, "r" * 50 + "o" * 50, "o" + "rs" * 50, "sro" * 45]
)
async def test_pieces_come_to_what_one_decision_does(kinds: str) -> None:
    """The same deliveries and skips in the same order, and the same records, whatever lies where."""
    tasks, now, settings = tasks_of(kinds), at(7200), TaskSettings()
    whole = admit(tasks, now, settings)
    admission = await admit_in_pieces(tasks, now, settings)
    assert admission == whole
    assert await records_in_pieces(admission) == records_of(whole)


@pytest.mark.parametrize("count", [PIECE, PIECE + 1])
async def test_only_many_tasks_take_a_checkpoint(count: int) -> None:
    """A delivery as usual is decided about and recorded at once."""
    ran: list[bool] = []

    async def look() -> None:
        ran.append(True)
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await records_in_pieces(await admit_in_pieces(tasks_of("r" * count), at(7200), TaskSettings()))
        assert bool(ran) == (count > PIECE)


async def test_very_many_tasks_of_one_session_let_others_run(world: TaskWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision about hundreds of them is one message in one commit, with a bounded number between two checkpoints."""
    count = 300
    monkeypatch.setattr("whenidle_actors.task_pieces.PIECE", 10)
    monkeypatch.setattr("whenidle_actors.task_pursuit.PIECE", 10)
    done = {"read": 0, "admitted": 0, "recorded": 0}

    def counting(where: Any, name: str, what: str, size: Any) -> None:
        real = getattr(where, name)

        def counted(*args: Any) -> Any:
            done[what] += size(*args)
            return real(*args)

        monkeypatch.setattr(where, name, counted)

    counting(task_pursuit, "from_row", "read", lambda _: 1)
    counting(task_pieces, "admit", "admitted", lambda tasks, *_: len(tasks))
    counting(task_pieces, "records_of", "recorded", lambda admission: len(admission.delivered))
    seen: list[int] = []

    async def look() -> None:
        while True:
            seen.append(sum(done.values()))
            await trio.lowlevel.checkpoint()

    async with world.root():
        for number in range(count):
            catch_up = 60 if number % 3 == 0 else None
            await world.make(every(86_400, 10 + number / 1000), title=str(number), catch_up_seconds=catch_up)
    await world.advance(seconds(3600))
    world.store.batches.clear()
    async with trio.open_nursery() as nursery, world.host():
        nursery.start_soon(look)
        while not any(batch.receipts for batch in world.store.batches):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    async with world.host():
        await settled()
        assert done == {"read": count, "admitted": count, "recorded": count * 2 // 3}
        # The last piece that is read and the first that is decided about stand together, and trio may run this task
        # first in one round and last in the next, so that it misses one in two.
        assert max(after - before for before, after in pairwise(seen)) <= 40
        found = [(title, when) for when, title, _, _ in await world.delivered()]
        assert found == [(str(number), 3600) for number in range(count) if number % 3]
        (delivery,) = [batch for batch in world.store.batches if batch.receipts]
        assert len(delivery.tasks) == count
        assert len(world.runs) == 1
