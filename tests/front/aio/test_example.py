"""The example of an asyncio host, run as a newcomer runs it."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "asyncio_host.py"


def test_the_example_reminds_and_is_called_from_a_thread(tmp_path: Path) -> None:
    """Both messages arrive, and a second run has an agent of its own."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        told = [line.partition(" was told: ")[2] for line in done.stdout.splitlines()]
        assert told == ["Hello from a thread.", 'reminder_prompt_json: "Stretch your legs."']
        assert done.stderr == ""
