"""`import whenidle`: what a user of the library finds there."""

import ast
import importlib
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import whenidle
import whenidle.testing
from whenidle import (
    AfterRule,
    AtRule,
    Caller,
    CreateTask,
    CronRule,
    DailyRule,
    EveryRule,
    Gap,
    MemoryStore,
    Overlap,
    RRuleRule,
    Rule,
    RuleError,
    TargetKind,
    Task,
    Tasks,
    TaskSettings,
    TaskStatus,
    Turn,
    UpdateTask,
    VirtualClock,
    WeeklyRule,
    anthropic_tools,
    mcp_tools,
    open_host,
    openai_chat_tools,
    openai_responses_tools,
    preview,
)

NOW = datetime(2026, 3, 7, tzinfo=UTC)
TEXT = "DTSTART:20260307T090000Z\nRRULE:FREQ=MONTHLY;BYDAY=-1SU"


def imports_for_checkers() -> dict[str, set[str]]:
    """Return what a type checker sees that `whenidle` imports: names by module."""
    tree = ast.parse(Path(whenidle.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    found = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(found) == len(block.body)
    return {str(node.module): {alias.name for alias in node.names} for node in found}


def test_what_is_listed_is_there_and_nothing_else_is_imported() -> None:
    """`__all__`, the imports that checkers see, and what the interpreter finds agree; no name is listed twice."""
    assert len(whenidle.__all__) == len(set(whenidle.__all__))
    seen = imports_for_checkers()
    assert set().union(*seen.values()) == set(whenidle.__all__)
    assert {room: set(names.split()) for room, names in whenidle._ROOMS.items()} == seen
    for room, names in seen.items():
        for name in names:
            assert getattr(whenidle, name) is getattr(importlib.import_module(room), name)
    assert set(whenidle.__all__) <= set(dir(whenidle))


def test_a_name_that_is_none_is_refused() -> None:
    """As by any module: with an `AttributeError`, or an `ImportError` where it is imported."""
    for module in (whenidle, whenidle.testing):
        with pytest.raises(AttributeError, match="has no attribute 'open_hots'"):
            module.open_hots  # noqa: B018 - it is the access that fails
    with pytest.raises(ImportError, match="cannot import name 'open_hots'"):
        exec("from whenidle import open_hots")  # noqa: S102 - checkers would not have it


def test_a_star_imports_what_is_listed() -> None:
    """Also before anything was asked for by its name."""
    script = (
        "import whenidle; nothing = set(whenidle._ROOM_OF) & set(vars(whenidle)); from whenidle import *; "
        "print(nothing, set(whenidle.__all__) - set(globals()), open_host.__name__)"
    )
    assert output_of(script) == "set() set() open_host"


def output_of(script: str) -> str:
    """Return what a new interpreter prints that runs `script`."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_library_imports_nothing_else() -> None:
    """Not even the runtime: a program that has its own reasons to import it does not wait for more."""
    script = "import sys; before = set(sys.modules); import whenidle; print(sorted(set(sys.modules) - before))"
    assert output_of(f"import typing; {script}") == "['whenidle']"


def test_opening_hosts_does_not_import_the_command_line() -> None:
    """Neither the commands, nor what they parse and draw with, nor the lab, comes with any of the names."""
    others = ("rich", "cyclopts", "whenidle.cli", "whenidle_lab")
    assert output_of(f"import sys; from whenidle import *; print([m for m in {others} if m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        (AfterRule(90), "2026-03-07T00:01:30+00:00"),
        (AtRule(datetime(2026, 3, 8, tzinfo=UTC)), "2026-03-08T00:00:00+00:00"),
        (EveryRule(600), "2026-03-07T00:10:00+00:00"),
        (DailyRule("09:00", "Europe/Paris"), "2026-03-07T09:00:00+01:00"),
        (WeeklyRule("09:00", "Europe/Paris", [1]), "2026-03-09T09:00:00+01:00"),
        (CronRule("0 9 * * *", "Europe/Paris"), "2026-03-07T09:00:00+01:00"),
        (RRuleRule.parse(TEXT), "2026-03-29T09:00:00+00:00"),
        (TEXT, "2026-03-29T09:00:00+00:00"),
    ],
)
def test_a_rule_of_any_kind_can_be_previewed(rule: Rule | str, first: str) -> None:
    """The seven kinds, and RRULE text; each occurrence has its instant and its local time."""
    (occurrence,) = preview(rule, after=NOW, count=1)
    assert occurrence.local.isoformat() == first
    assert occurrence.utc.isoformat() == occurrence.local.astimezone(UTC).isoformat()


def test_a_preview_follows_the_policies() -> None:
    """CASE 1: the policies may be given as what they are or as words."""
    daily = DailyRule("02:30", "America/New_York")
    skipped = preview(daily, after=datetime(2026, 3, 8, tzinfo=UTC), count=1)
    assert [each.utc.isoformat() for each in skipped] == ["2026-03-09T06:30:00+00:00"]
    for gap in (Gap.SHIFT, "shift"):
        (shifted,) = preview(daily, after=datetime(2026, 3, 8, tzinfo=UTC), count=1, gap=gap, overlap=Overlap.BOTH)
        assert shifted.utc.isoformat() == "2026-03-08T07:30:00+00:00"
    with pytest.raises(RuleError, match="write two lines"):
        preview("daily", after=NOW, count=1)


async def silent(_: Turn) -> None:
    """Do nothing."""


async def test_tasks_are_made_and_changed_by_the_host_s_own_code() -> None:
    """What the package's description shows works with what it exports."""
    tasks = Tasks(TaskSettings(gap=Gap.SHIFT))
    async with open_host(store=MemoryStore(), turn=silent, clock=VirtualClock(NOW), suites=[tasks]) as host:
        rule = WeeklyRule("08:00", "Europe/Paris", weekdays=[1])
        task = await tasks.desk.create(CreateTask("Digest", "Sum up the week.", rule, TargetKind.NEW), Caller(""))
        assert isinstance(task, Task)
        paused = await tasks.desk.edit(UpdateTask(task.id, active=False), Caller(""))
        assert paused is not None
        assert paused.status is TaskStatus.PAUSED
        assert (await host.create_agent()).tools() == tasks.tools()


def test_tools_have_the_shape_of_each_client() -> None:
    """The exporters take what a suite or an agent offers."""
    tools = Tasks().tools()
    names = [tool.name for tool in tools]
    assert [each["name"] for each in mcp_tools(tools)] == names
    assert [each["name"] for each in anthropic_tools(tools)] == names
    assert [each["name"] for each in openai_responses_tools(tools)] == names
    assert [each["function"]["name"] for each in openai_chat_tools(tools)] == names
