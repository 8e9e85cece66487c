"""The examples for agent frameworks, run as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

FRAMEWORKS = Path(__file__).parents[2] / "examples" / "frameworks"

STORY = """\
01 Jan 00:00 ada: It is scheduled.
01 Jan 00:00 bob: It is scheduled.
01 Jan 01:00 ada: It is time! You asked me: 'Remind me to stretch in an hour.'
01 Jan 17:00 bob: It is time! You asked me: 'Every evening at six, sum up the day.'
"""


@pytest.mark.parametrize("example", sorted(FRAMEWORKS.glob("*.py")), ids=lambda path: path.stem)
def test_a_delivery_is_the_next_turn_of_an_agent_with_its_history(example: Path, tmp_path: Path) -> None:
    """The model calls `schedule_create`, time passes, and what comes due is said with what was asked in mind."""
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    # Two users speak at once, and whose turn comes first is nobody's promise.
    lines = done.stdout.splitlines(keepends=True)
    assert "".join(sorted(lines[:2]) + lines[2:]) == STORY


def test_there_is_one_for_each_framework() -> None:
    """Each framework that the project names has its example."""
    assert {path.stem for path in FRAMEWORKS.glob("*.py")} == {
        "langgraph_agent",
        "openai_agents_agent",
        "pydantic_ai_agent",
    }
