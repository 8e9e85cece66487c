"""What the speed must not fall short of. A floor is reported, never enforced: no benchmark fails by time."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

import attrs

from benchmarks.harness.postgres_jobs import BATCHES

if TYPE_CHECKING:
    from benchmarks.harness.rows import Row

_HOLDS: Final = {">=": operator.ge, "<=": operator.le}


@attrs.frozen
class Floor:
    """A bound for one column of the rows whose name begins with `row`, measured against `peer`."""

    row: str
    peer: str
    column: str
    relation: str
    limit: float

    def __str__(self) -> str:
        return f"{self.column} {self.relation} {self.limit:g}"

    def concerns(self, row: Row) -> bool:
        """Return whether it is a bound for this row."""
        name: str = row["name"]
        return name.startswith(self.row) and row["peer_name"] == self.peer

    def is_met(self, row: Row) -> bool:
        """Return whether the row keeps it."""
        return bool(_HOLDS[self.relation](row[self.column], self.limit))


_OLD_RULE: Final = "dateutil, DTSTART 20 years ago"
_YOUNG_RULE: Final = "dateutil, DTSTART 5 months ago"

FLOORS: Final = (
    # One by one, as the design measured it. In bursts a queue hands over many messages for one task switch.
    Floor("mailbox: tell 1,000 actors, one by one", "asyncio.Queue", "ratio", ">=", 3),
    # An ask may cost four checkpoints.
    Floor("mailbox: ask", "trio checkpoint", "ratio", ">=", 0.25),
    Floor("memory: idle agent", "trio task with a memory channel", "ours", "<=", 512),
    Floor("alarm: arm", "asyncio call_later", "ratio", ">=", 2),
    Floor("alarm: fire", "asyncio call_later", "ratio", ">=", 2),
    Floor("creates: one caller", "fdatasync of one block", "ratio", ">=", 0.3),
    Floor("creates: 100 agents", "one caller", "ratio", ">=", 4),
    # "No slower", with a tenth for the noise of a shared machine.
    Floor("growth: create", "log of 30", "ratio", ">=", 0.9),
    Floor("growth: list", "log of 30", "ratio", ">=", 0.9),
    *(Floor(f"rules: {question}, rrule", _OLD_RULE, "ours", "<=", 50) for question in ("next", "latest")),
    *(
        Floor(f"rules: {question}, {kind}", _YOUNG_RULE, "ours", "<=", 10)
        for question in ("next", "latest")
        for kind in ("daily", "weekly", "cron", "every")
    ),
    Floor("rules: slowest refusal", "most it may take", "ours", "<=", 50),
    # Whatever pgqueuer is set to, and whether a session's tasks come as one message or one by one.
    *(Floor("task_delivery:", f"pgqueuer, batches of {batch}", "ratio", ">=", 2) for batch in BATCHES),
    Floor("task_delivery:", "APScheduler", "ratio", ">=", 10),
    # At most 1.3 times the cheapest way from asyncio into trio, whichever that is on the machine.
    *(
        Floor("embedding: schedule_list,", peer, "ratio", ">=", 1 / 1.3)
        for peer in ("trio in guest mode, bare", "trio in a thread, bare")
    ),
    # Within twice the time.
    Floor("mcp_server: schedule_list", "no-op tool of the SDK", "ratio", ">=", 0.5),
)


def with_floor(row: Row) -> Row:
    """Return the row with `floor`, in words, and `met`; both None where there is no floor."""
    floor = next((floor for floor in FLOORS if floor.concerns(row)), None)
    return {**row, "floor": str(floor) if floor else None, "met": floor.is_met(row) if floor else None}
