"""How fast the MCP server answers over a real pipe, beside a tool of the same SDK that does nothing.

The client writes lines and reads lines, so that the server is what is measured. Calls of both servers alternate, each
after the other has come to rest, and the middle of all of them counts: on a machine with few processors a single call
says nothing.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

import trio

from benchmarks.harness.disk import scratch
from benchmarks.harness.mcp_pipe import piped
from benchmarks.harness.rows import Row, cost_row
from whenidle_actors.offline import open_manager
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_record import TargetKind
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_settings import Caller

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.harness.mcp_pipe import Pipe

_TASKS: Final = 100
_CALLS: Final = 600
_WARM_UP: Final = 20
_NOOP: Final = "no-op tool of the SDK"
_PROMPT: Final = "Sum up what was decided last week, and what is still open. Send it to the team before nine."


def run(scale: float = 1.0) -> list[Row]:
    """Measure the tools; `scale` multiplies the calls."""
    calls = max(2, round(_CALLS * scale))
    with (
        scratch() as folder,
        piped("benchmarks.harness.noop_mcp") as noop,
        piped("whenidle", "mcp", "--store", str(_filled(folder)), "--agent", "true") as ours,
    ):
        page = ours.call("schedule_list")[1]["structuredContent"]
        assert page["shown"] == _TASKS
        first = page["items"][0]["id"]
        asked: dict[str, list[float]] = {name: [] for name in (_NOOP, "list", "changed", "view")}
        for number in range(calls + _WARM_UP):
            asked[_NOOP].append(noop.call("noop")[0])
            asked["list"].append(ours.call("schedule_list")[0])
            asked["view"].append(ours.call("schedule_view", id=first)[0])
            asked["changed"].append(_after_a_change(ours, first, number))
    middle = {name: statistics.median(took[_WARM_UP:]) * 1000 for name, took in asked.items()}
    return [
        cost_row(f"mcp_server: {what}", middle[name], middle[_NOOP], "ms", _NOOP)
        for name, what in (
            ("list", f"schedule_list of {_TASKS} tasks"),
            ("changed", f"schedule_list of {_TASKS} tasks, one changed before"),
            ("view", "schedule_view"),
        )
    ]


def _after_a_change(pipe: Pipe, task_id: str, number: int) -> float:
    _, changed = pipe.call("schedule_edit", id=task_id, action="update", title=f"Digest {number}")
    assert not changed["isError"]
    return pipe.call("schedule_list")[0]


def _filled(folder: Path) -> Path:
    """Return a store with weekly tasks."""
    path = folder / "tasks.db"

    async def fill() -> None:
        async with open_manager(path) as manager:
            for number in range(_TASKS):
                rule = WeeklyRule(f"{number % 24:02d}:30", "Europe/Paris", (1, 4))
                request = CreateTask(f"Digest of team {number}", _PROMPT, rule, TargetKind.NEW)
                await manager.create_task(request, Caller(""))

    trio.run(fill)
    return path
