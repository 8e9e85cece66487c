"""The demo and the examples, run as a newcomer runs them."""

import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from whenidle.cli.demo_story import Pace

from .command_line import Call, program
from .processes import alive, eventually, started

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_demo_shows_and_checks_its_three_promises(call: Call) -> None:
    """It ends with status 0 only if the log proves what was told."""
    result = call("demo")
    assert result.err == ""
    assert result.status == 0
    proofs = [line.partition("✓ ")[2] for line in result.out.splitlines() if "✓" in line]
    assert proofs[0].startswith("schedule-1 was delivered")
    assert proofs[1].startswith("schedule-2 was delivered")
    assert proofs[2:] == [f"schedule-{number}: one dispatch, one message, one turn that took it" for number in (1, 2)]
    assert result.out.count("schedule/change") == 4
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("start_seconds", "slower"), [(0.0, 1), (0.4, 1), (1.5, 1), (1.6, 2), (6.0, 4), (7.0, 5), (1e9, 5)]
)
def test_the_demo_takes_its_time_on_a_slow_machine(start_seconds: float, slower: int) -> None:
    """Where processes start slowly all waits are longer, in proportion; elsewhere they are seven seconds in all."""
    pace = Pace.of(start_seconds)
    assert (pace.thinking, pace.while_busy, pace.while_down) == (4 * slower, 2 * slower, 3 * slower)


def test_the_demo_takes_its_host_with_it_when_it_is_stopped() -> None:
    """SIGTERM ends the demo and the process it started."""
    with started(program("demo", "--json")) as demo:
        assert demo.stdout is not None
        told = (json.loads(line) for line in demo.stdout)
        text = next(step["text"] for step in told if " runs it" in step["text"])
        pid = int(text.split()[1])
        assert alive(pid)
        demo.send_signal(signal.SIGTERM)
        assert list(told)[-1] == {"code": "terminated", "message": "the demo was ended by SIGTERM"}
        assert demo.wait() == 1
    eventually(lambda: not alive(pid))


def test_the_first_example_reminds(tmp_path: Path) -> None:
    """The reminder arrives, and a second run has an agent of its own."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "reminder.py")], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert 'reminder_prompt_json: "Stretch your legs."' in done.stdout
        assert done.stderr == ""


def test_a_weekly_digest_comes_each_monday(capsys: pytest.CaptureFixture[str]) -> None:
    """A session of its own each week, at eight in Paris, also behind the change of clocks; and next comes the next."""
    runpy.run_path(str(EXAMPLES / "task_digest.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"to come Mon {day} Jan 08:00 (07:00 UTC)" for day in ("05", "12", "19")]
    assert len(lines) == 3 + 13 + 1
    told = '08:00:00.000+01:00[Europe/Paris]  "Sum up what was decided last week."'
    assert lines[3] == f"at.20260105T070000000Z  2026-01-05T{told}"
    assert lines[-2] == f"at.20260330T060000000Z  2026-03-30T{told.replace('+01', '+02')}"
    assert lines[-1] == "delivered 13, next at 06 Apr 06:00 UTC"


def test_a_virtual_day_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    """Every reminder comes at its minute, or when the agent is idle again."""
    runpy.run_path(str(EXAMPLES / "virtual_day.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in lines] == ["12:00", "12:30", "12:45", "16:00", "20:00", "00:00", "04:00"]
    assert lines[1].endswith('reminder_prompt_json: "Lunch."')
    assert lines[2].endswith('reminder_prompt_json: "Call Bob."')
