"""Two ways to look for inputs that break a target: guided by coverage where atheris is installed, or at random."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .found import FOLDER, keep

if TYPE_CHECKING:
    from .target import Target

PACKAGES: Final = ["whenidle", "whenidle_actors", "whenidle_protocol", "whenidle_clock"]
"""What is instrumented."""
LONGEST: Final = 4096
"""Bytes of an input."""
_ONE_INPUT_SECONDS: Final = 120
_MEMORY_MIB: Final = 2048
_ROUND: Final = 500
"""Examples between two looks at the clock."""


def has_atheris() -> bool:
    """Return whether the search can be guided by coverage."""
    return importlib.util.find_spec("atheris") is not None


def guided(name: str, seconds: int, folder: Path = FOLDER) -> None:
    """Search until the time is over or an input breaks the target; then this process ends.

    To be called before anything of the product is imported.

    An input that breaks it, hangs, or fills the memory is written to the folder of the target by libFuzzer itself.
    """
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=PACKAGES):
        targets = importlib.import_module("tests.fuzz.targets")
    target: Target = targets.TARGETS[name]

    kept = folder / name
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        limits = [f"-max_total_time={seconds}", f"-timeout={_ONE_INPUT_SECONDS}", f"-rss_limit_mb={_MEMORY_MIB}"]
        options = [*limits, f"-max_len={LONGEST}", f"-artifact_prefix={kept}/", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *options, corpus, str(kept)], target.check)
        atheris.Fuzz()


def at_random(target: Target, seconds: float, folder: Path = FOLDER) -> int:
    """Search until the time is over or an input breaks the target; return how many inputs there were.

    Raises:
        Exception: what an input did; the simplest one that does it is kept in `folder`.
    """
    from hypothesis import HealthCheck, given, settings  # noqa: PLC0415 - the guided search has no need of it

    from .inputs import inputs  # noqa: PLC0415 - the same

    tried = 0
    failing: list[bytes] = []

    @settings(max_examples=_ROUND, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(inputs(target))
    def look(data: bytes) -> None:
        nonlocal tried
        tried += 1
        try:
            target.check(data)
        except Exception:
            failing.append(data)
            raise

    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            look()
        except Exception:
            # The last one that failed is the simplest: it is run once more to show it.
            print(f"kept as {keep(target.name, failing[-1], folder)}", flush=True)  # noqa: T201 - as above
            raise
    return tried
