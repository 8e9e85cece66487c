"""The live status that `whenidle run` shows on a terminal."""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice

import attrs
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from whenidle.cli.output import Output
from whenidle.cli.reporting import Happening, LineReporter, Reporter
from whenidle.cli.task_lines import target_words
from whenidle.cli.text import duration, until, visible
from whenidle_actors.errors import StoreError
from whenidle_actors.host import Host
from whenidle_actors.stores.base import TaskRow
from whenidle_actors.task_rows import entry_of
from whenidle_clock import Clock, from_millis
from whenidle_protocol.task_listing import DamagedTask

AGENTS_SHOWN = 12
TASKS_SHOWN = 4
NEWS_SHOWN = 8

_STYLES = {"running": "bold green", "maintenance": "yellow", "idle": "dim"}


@attrs.frozen
class AgentRow:
    """One agent, or a session that has none in memory but something to come."""

    session: str
    phase: str
    due: datetime | None
    """Earliest target of its reminders."""


@attrs.frozen
class TaskLine:
    """One active task."""

    title: str
    due: datetime
    target: str


@attrs.frozen
class Picture:
    """What the status shows at one moment."""

    store: str
    now: datetime
    began: datetime
    agents: int
    """Agents in memory, shown or not."""
    rows: tuple[AgentRow, ...]
    news: tuple[str, ...] = ()
    tasks: tuple[TaskLine, ...] = ()
    """Those that come due next."""
    task_count: int = 0
    """Active tasks, shown or not."""


def reporter_for(output: Output, clock: Clock) -> Reporter:
    """Return what tells of a host on `output`."""
    return LiveReporter(output, clock) if output.terminal else LineReporter(output, clock)


def drawn(picture: Picture) -> RenderableType:
    """Return the picture for a terminal of any size."""
    up = duration((picture.now - picture.began).total_seconds())
    tasks = f"tasks {picture.task_count}  " if picture.task_count else ""
    head = Text.assemble(
        ("whenidle ", "bold"),
        visible(picture.store),
        f"  up {up}  agents {picture.agents}  {tasks}",
        ("Ctrl-C stops", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    agents = _table("session", "phase", "next reminder")
    for row in picture.rows:
        due = until(row.due, picture.now) if row.due else "-"
        agents.add_row(Text(visible(row.session)), Text(row.phase, _STYLES.get(row.phase, "")), Text(due))
    due_tasks = _table("task", "next occurrence", "target")
    for task in picture.tasks:
        due_tasks.add_row(Text(visible(task.title)), Text(until(task.due, picture.now)), Text(visible(task.target)))
    news = [Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in picture.news]
    return Group(head, agents, *([due_tasks] if picture.tasks else []), *news)


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        table.add_column(head, overflow="ellipsis", no_wrap=True)
    return table


async def look_at(host: Host, began: datetime) -> Picture:
    """Return what is to be seen of `host` now: agents at work first, then who comes next, and the next tasks."""
    due: dict[str, datetime | None] = {}
    async for each in host.store.attention():
        target = each.index.due_millis
        due[each.session_id] = None if target is None else from_millis(target)
        if len(due) == AGENTS_SHOWN:
            break
    phases = {agent.id: agent.phase.value for agent in host.agents}
    busy = [name for name, phase in phases.items() if phase != "idle"]
    order = dict.fromkeys((*busy, *due, *phases))
    rows = (AgentRow(name, phases.get(name, "asleep"), due.get(name)) for name in islice(order, AGENTS_SHOWN))
    page = await host.store.tasks(active=True, limit=TASKS_SHOWN)
    tasks = tuple(map(_task_line, page.rows))
    return Picture(host.store.name, host.clock.now(), began, len(phases), tuple(rows), (), tasks, page.total)


def _task_line(row: TaskRow) -> TaskLine:
    task = entry_of(row)
    if isinstance(task, DamagedTask):
        return TaskLine(task.id, from_millis(row.next_millis or 0), "(damaged)")
    return TaskLine(task.title, task.scheduled_at, target_words(task.target))


class LiveReporter(Reporter):
    """Shows a picture that is drawn anew when something happens, and once a second."""

    def __init__(self, output: Output, clock: Clock) -> None:
        super().__init__(output, clock)
        # Drawn from our own thread, at our own times; what else is printed is none of its business.
        self._live = Live(console=output.console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._news_shown: deque[str] = deque(maxlen=NEWS_SHOWN)
        self._picture: Picture | None = None
        self._began = clock.now()

    def started(self, host: Host) -> None:
        """Open the display."""
        self._live.start()
        super().started(host)

    async def look(self, host: Host) -> None:
        """Make the picture of this moment; while the host stops, the last one stays."""
        with suppress(StoreError):
            self._picture = await look_at(host, self._began)

    def write(self, news: Sequence[Happening]) -> None:
        """Draw the picture with the latest news."""
        self._news_shown.extend(happening.line() for happening in news)
        if self._picture is not None:
            self._live.update(drawn(attrs.evolve(self._picture, news=tuple(self._news_shown))), refresh=True)

    def finish(self) -> None:
        """Leave the last picture on the screen and close the display."""
        self._live.stop()
