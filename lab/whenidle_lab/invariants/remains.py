"""What still goes on for an agent: tasks of the runtime that hold it while they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.agent_core import AgentCore
from whenidle_protocol.agent_state import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    import trio

_HOLDERS = ("agent", "self")
"""Names by which code of the runtime holds the agent that it works for."""


def remains_of(session: str, tasks: Iterable[trio.lowlevel.Task]) -> list[str]:
    """Return the names of those of `tasks` in which the runtime waits for an agent of `session` that was disposed.

    Tasks that users started are none of them, whatever they hold on to.
    """
    return [task.name for task in tasks if _works_for(task, session)]


def _works_for(task: trio.lowlevel.Task, session: str) -> bool:
    frames = [frame for frame, _ in task.iter_await_frames()]
    if not frames or not _is_of_runtime(frames[0]):
        return False
    return any(_is_gone(frame.f_locals.get(name), session) for frame in frames for name in _HOLDERS)


def _is_of_runtime(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("whenidle_actors.")


def _is_gone(value: object, session: str) -> bool:
    return isinstance(value, AgentCore) and value.name == session and value.phase is Phase.DISPOSED
