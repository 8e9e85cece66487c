"""The picture that `whenidle top` draws: from a view to lines, for a terminal of any size."""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain

import attrs
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from whenidle.cli.text import duration, until, visible
from whenidle.status.view import View
from whenidle_clock import format_instant

_STYLES = {"running": "bold green", "turn open": "bold green", "maintenance": "yellow", "faulted": "bold red"}
_SHORT = 12
"""Lines of a terminal on which there is room for agents only."""
_LONGEST_CELL = 60
_GAP = "  "
"""Between columns."""


@attrs.frozen
class Section:
    """A table below a heading."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    styles: tuple[str, ...] = ()
    """Of the rows; none if left out."""

    def lines(self, count: int, first: int = 0, width: int | None = None) -> list[Text]:
        """Return the heading and `count` rows from the `first` on, each column as wide as its widest cell.

        Where that is more than `width`, the widest columns give way: long ids and titles hide no number.
        """
        cells = [[visible(cell)[:_LONGEST_CELL] for cell in row] for row in (self.heads, *self.rows)]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        if width is not None:
            widths = _narrowed(widths, width - len(_GAP) * (len(widths) - 1))
        texts = [_GAP.join(map(_fitted_cell, row, widths)).rstrip() for row in cells]
        styles = ("dim", *(self.styles or ("",) * len(self.rows)))
        lines = [Text(text, style) for text, style in zip(texts, styles, strict=True)]
        return [lines[0], *lines[1 + first : 1 + first + count]]


def screen(view: View, width: int, height: int, *, first: int = 0, notice: str = "") -> list[Text]:
    """Return `height` lines, none longer than `width` cells.

    Args:
        view: what there is to see.
        width: of the terminal, in cells.
        height: of the terminal, in lines.
        first: how many agents are scrolled past.
        notice: what else there is to say.
    """
    agents = agent_section(view)
    others = [] if height <= _SHORT else [section for section in other_sections(view) if section.rows]
    lines = head(view)
    room = height - len(lines) - 2 - 2 * len(others)  # the heading of the agents and the last line; a gap and a heading
    shares = _shares([len(section.rows) for section in others], room - min(len(agents.rows), max(room // 2, 1)))
    shown = max(room - sum(shares), 0)
    first = min(first, max(len(agents.rows) - shown, 0))
    lines += agents.lines(shown, first, width)
    for section, share in zip(others, shares, strict=True):
        lines += [Text(), *section.lines(share, width=width)]
    lines = [*lines[: height - 1], *[Text()] * (height - 1 - len(lines)), _foot(view, first, shown, notice)]
    return [_fitted(line, width) for line in lines[-height:]]


def everything(view: View) -> list[Text]:
    """Return all there is to see, for a file or a pager."""
    sections = (agent_section(view), *(section for section in other_sections(view) if section.rows))
    tables = chain.from_iterable([Text(), *section.lines(len(section.rows))] for section in sections)
    return [*head(view), *tables]


def last_first(view: View) -> int:
    """Return the most agents that it makes sense to scroll past."""
    return max(len(view.agents) - 1, 0)


def head(view: View) -> list[Text]:
    """Return the two lines on top: who tells, and how much there is to do."""
    if view.pid is None:
        source = "no host answers, the store says:"
    else:
        since = f", seen for {duration((view.now - view.began).total_seconds())}" if view.began else ""
        source = f"host {view.pid}{since}"
    agents = f"agents {view.agent_count}" if view.pid is not None else f"sessions with work {view.agent_count}"
    facts = [agents, f"turns running {view.running}"]
    facts += [f"waiting {view.waiting}"] if view.waiting else []
    facts += [f"tasks {view.task_count}"]
    return [
        Text.assemble(("whenidle top", "bold"), f"  {source}  ", (visible(view.store), "dim")),
        Text.assemble(format_instant(view.now), "  ", "  ".join(facts)),
    ]


def agent_section(view: View) -> Section:
    """Return the table of agents."""
    rows = tuple(
        (
            agent.session,
            agent.phase,
            _number(agent.mailbox),
            _number(agent.inbox),
            _turn(agent.turn, agent.began, view.now),
        )
        for agent in view.agents
    )
    styles = tuple(_STYLES.get(agent.phase, "") for agent in view.agents)
    return Section(("agent", "phase", "mailbox", "inbox", "turn"), rows, styles)


def other_sections(view: View) -> list[Section]:
    """Return the tables below: what comes, what was delivered, and steps of the clock."""
    coming = tuple((until(each.due, view.now), each.what, each.where) for each in view.coming)
    deliveries = tuple(
        (_ago(each.at, view.now), each.session, each.what, _late(each.late_millis)) for each in view.deliveries
    )
    steps = tuple((_ago(each.at, view.now), _moved(each.by_millis)) for each in view.steps)
    return [
        Section(("next", "what", "where"), coming),
        Section(("delivered", "to", "what", "late"), deliveries),
        Section(("clock step", "by"), steps),
    ]


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """Return how many rows each of several tables gets: one in turn, as long as there is room and need."""
    shares = [0] * len(wanted)
    while room > 0 and shares != list(wanted):
        for number, rows in enumerate(wanted):
            if room > 0 and shares[number] < rows:
                shares[number] += 1
                room -= 1
    return shares


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """Return widths that together take `room`, the widest cut down to the same width; one cell each at least."""
    narrowed = list(widths)
    while sum(narrowed) > max(room, len(narrowed)):
        narrowed[narrowed.index(max(narrowed))] -= 1
    return narrowed


def _fitted_cell(cell: str, width: int) -> str:
    return set_cell_size(cell, width) if cell_len(cell) <= width else f"{set_cell_size(cell, width - 1)}…"


def _foot(view: View, first: int, shown: int, notice: str) -> Text:
    last = min(first + shown, len(view.agents))
    where = f"agents {first + 1}-{last} of {view.agent_count}  " if (last and last < view.agent_count) or first else ""
    return Text.assemble(
        (f"{visible(notice)}  " if notice else "", "yellow"), (f"{where}q quit  p pause  j/k scroll", "dim")
    )


def _fitted(line: Text, width: int) -> Text:
    fitted = line.copy()
    fitted.no_wrap = True
    fitted.truncate(width, overflow="ellipsis")
    return fitted


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _turn(turn: int | None, began: datetime | None, now: datetime) -> str:
    if turn is None:
        return "-"
    return f"{turn}, {duration((now - began).total_seconds())}" if began else str(turn)


def _ago(at: datetime, now: datetime) -> str:
    seconds = (now - at).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 0 else f"at {format_instant(at)}"


def _late(millis: int) -> str:
    return "on time" if millis < 100 else duration(millis / 1000)  # noqa: PLR2004 - shown as 0.1 s from here on


def _moved(millis: int) -> str:
    return f"{'back' if millis < 0 else 'forward'} {duration(abs(millis) / 1000)}"
