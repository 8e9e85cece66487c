"""All targets, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .arguments import REMINDER_TOOLS, TASK_TOOLS
from .commands import COMMANDS
from .frames import REMINDER_FRAMES, TASK_FRAMES
from .logs import SESSION_LOGS
from .names import NAMES
from .rules import CRON, RRULES
from .stored import STORED_TASKS
from .terminal import TERMINAL
from .times import TIMES

if TYPE_CHECKING:
    from tests.fuzz.target import Target

ALL: Final = (
    REMINDER_TOOLS,
    TASK_TOOLS,
    RRULES,
    CRON,
    TIMES,
    SESSION_LOGS,
    STORED_TASKS,
    REMINDER_FRAMES,
    TASK_FRAMES,
    NAMES,
    TERMINAL,
    COMMANDS,
)
TARGETS: Final[dict[str, Target]] = {target.name: target for target in ALL}
