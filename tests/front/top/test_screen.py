"""The picture of `whenidle top`: from a view to lines that fit a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from whenidle.cli.top_screen import everything, last_first, screen
from whenidle.status import AgentView, ClockStep, Coming, Delivered, View

NOW = datetime(2026, 3, 8, 10, 0, tzinfo=UTC)
EVIL = "[red]\x1b[2J\u202e\n"

VIEW = View(
    store="/data/agents.db",
    now=NOW,
    pid=4711,
    began=NOW - timedelta(minutes=4, seconds=10),
    agent_count=3,
    running=1,
    waiting=2,
    task_count=7,
    agents=(
        AgentView("ada", "running", 0, 2, 12, NOW - timedelta(seconds=3)),
        AgentView("bob", "maintenance", 1, 0),
        AgentView("eve", "idle", 0, 0),
    ),
    coming=(
        Coming(NOW + timedelta(seconds=20), "reminder", "bob"),
        Coming(NOW + timedelta(hours=2), "Digest", "a new session"),
    ),
    deliveries=(Delivered(NOW - timedelta(minutes=1), "ada", "schedule-1", 2_500), Delivered(NOW, "bob", "task-1", 8)),
    steps=(ClockStep(NOW - timedelta(hours=1), -3_600_000),),
)


def told(view: View, width: int = 80, height: int = 24, **options: Any) -> list[str]:
    """Return the picture as plain text."""
    return [line.plain for line in screen(view, width, height, **options)]


def test_a_host_on_a_terminal_of_the_usual_size() -> None:
    """Agents with phase, mailbox and turn; what comes with a countdown; deliveries with lateness; steps."""
    assert told(VIEW) == [
        "whenidle top  host 4711, seen for 4m 10s  /data/agents.db",
        "2026-03-08T10:00:00.000Z  agents 3  turns running 1  waiting 2  tasks 7",
        "agent  phase        mailbox  inbox  turn",
        "ada    running      0        2      12, 3.0s",
        "bob    maintenance  1        0      -",
        "eve    idle         0        0      -",
        "",
        "next       what      where",
        "in 20s     reminder  bob",
        "in 2h 00m  Digest    a new session",
        "",
        "delivered   to   what        late",
        "1m 00s ago  ada  schedule-1  2.5s",
        "0.0s ago    bob  task-1      on time",
        "",
        "clock step  by",
        "1h 00m ago  back 1h 00m",
        "",
        "",
        "",
        "",
        "",
        "",
        "q quit  p pause  j/k scroll",
    ]


def test_a_store_without_a_host_says_so() -> None:
    """What nobody knows is a dash, and the first line says where the picture comes from."""
    view = View("/data/agents.db", NOW, agent_count=1, agents=(AgentView("ada", "turn open", turn=3, inbox=1),))
    assert told(view)[:4] == [
        "whenidle top  no host answers, the store says:  /data/agents.db",
        "2026-03-08T10:00:00.000Z  sessions with work 1  turns running 0  tasks 0",
        "agent  phase      mailbox  inbox  turn",
        "ada    turn open  -        1      3",
    ]


def test_agents_scroll_and_the_last_line_says_where() -> None:
    """However far one scrolls, the screen stays full; what is below keeps its place."""
    agents = tuple(AgentView(f"a{number:02}", "idle", 0, 0) for number in range(40))
    view = attrs.evolve(VIEW, agents=agents, agent_count=40)
    top, further, end = told(view), told(view, first=5), told(view, first=1_000)
    assert top[3].startswith("a00")
    assert further[3].startswith("a05")
    assert "a39" in "".join(end)
    shown = sum(line.startswith("a") and line[1].isdigit() for line in top)
    assert top[-1] == f"agents 1-{shown} of 40  q quit  p pause  j/k scroll"
    assert end[-1] == f"agents {41 - shown}-40 of 40  q quit  p pause  j/k scroll"
    assert last_first(view) == 39


def test_a_low_terminal_shows_agents_alone() -> None:
    """Where there is no room for tables below, agents get all of it."""
    lines = told(VIEW, height=7)
    assert len(lines) == 7
    assert lines[2].startswith("agent")
    assert not any(line.startswith(("next", "delivered", "clock")) for line in lines)


def test_long_ids_hide_no_number() -> None:
    """The session that a task makes has a long id; turn and lateness are seen beside it on a usual terminal."""
    made = "task-b22828f5b9f50437159eb7be4e0147f0.at.20260308T095900000Z"
    view = attrs.evolve(
        VIEW,
        agents=(AgentView(made, "running", 0, 2, 12, NOW - timedelta(seconds=3)),),
        coming=(),
        deliveries=(Delivered(NOW - timedelta(minutes=1), made, made[:37], 2_500),),
        steps=(),
    )
    assert told(view)[2:7] == [
        "agent                                          phase    mailbox  inbox  turn",
        "task-b22828f5b9f50437159eb7be4e0147f0.at.202…  running  0        2      12, 3.0s",
        "",
        "delivered   to                              what                            late",
        "1m 00s ago  task-b22828f5b9f50437159eb7be…  task-b22828f5b9f50437159eb7be…  2.5s",
    ]
    assert any(made in line.plain for line in everything(view))


def test_a_notice_is_on_the_last_line() -> None:
    """Whether it stands still, or what is wrong, is said where one looks for keys."""
    assert told(VIEW, notice="paused")[-1] == "paused  q quit  p pause  j/k scroll"


def test_nothing_untrusted_reaches_the_terminal() -> None:
    """Ids, titles and whatever a socket says are written out, in the picture and in the whole."""
    agents = (AgentView(EVIL, EVIL, 1, 1, 1, NOW),)
    view = View(EVIL, NOW, 1, NOW, 1, agents=agents, coming=(Coming(NOW, EVIL, EVIL),))
    view = attrs.evolve(view, deliveries=(Delivered(NOW, EVIL, EVIL, 0),))
    for lines in (told(view, width=300, notice=EVIL), [line.plain for line in everything(view)]):
        assert not set("\x1b\u202e\n") & set("".join(lines))
        assert r"[red]\x1b[2J\u202e\n" in "".join(lines)


def test_a_clock_that_was_set_back_shows_no_negative_age() -> None:
    """What lies in the future now is told by its instant."""
    view = attrs.evolve(VIEW, deliveries=(Delivered(NOW + timedelta(hours=1), "ada", "x", 0),))
    assert any(line.startswith("at 2026-03-08T11:00:00.000Z") for line in told(view))


texts = st.text(max_size=80)
numbers = st.none() | st.integers(0, 10**9)
instants = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
views = st.builds(
    View,
    texts,
    instants,
    numbers,
    st.none() | instants,
    st.integers(0, 500),
    agents=st.lists(st.builds(AgentView, texts, texts, numbers, numbers, numbers, instants), max_size=60).map(tuple),
    coming=st.lists(st.builds(Coming, instants, texts, texts), max_size=30).map(tuple),
    deliveries=st.lists(st.builds(Delivered, instants, texts, texts, st.integers(-(10**9), 10**9))).map(tuple),
    steps=st.lists(st.builds(ClockStep, instants, st.integers(-(10**12), 10**12)), max_size=12).map(tuple),
)


@given(views, st.integers(1, 200), st.integers(1, 70), st.integers(0, 100))
def test_every_view_fits_every_terminal(view: View, width: int, height: int, first: int) -> None:
    """As many lines as there are, none wider, all printable, whatever is in them."""
    lines = told(view, width, height, first=first)
    assert len(lines) == height
    assert all(cell_len(line) <= width for line in lines)
    assert all("\n" not in line and "\x1b" not in line for line in lines)


@pytest.mark.parametrize("height", range(13, 40))
def test_every_table_has_a_share_of_the_room(height: int) -> None:
    """No table is left without a row as long as there is room for one of each."""
    many = attrs.evolve(
        VIEW,
        agents=VIEW.agents * 20,
        coming=VIEW.coming * 10,
        deliveries=VIEW.deliveries * 10,
        steps=VIEW.steps * 10,
    )
    lines = told(many, height=height)
    heads = [number for number, line in enumerate(lines) if line.startswith(("agent ", "next ", "delivered", "clock"))]
    assert len(heads) == 4
    if height >= 16:
        assert all(lines[head + 1] for head in heads)
