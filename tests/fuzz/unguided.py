"""A search by hypothesis, at random: for where atheris is not installed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hypothesis import HealthCheck, given, settings

from .found import FOLDER, keep
from .inputs import inputs

if TYPE_CHECKING:
    from pathlib import Path

    from .target import Target

ROUND: Final = 500
"""Inputs between two looks at the clock."""


def search(target: Target, seconds: float, folder: Path = FOLDER) -> int:
    """Search until the time is over or an input breaks the target; return how many inputs there were.

    Raises:
        Exception: what an input did; the simplest one that does it is kept in `folder`.
    """
    tried = 0
    failing: list[bytes] = []

    @settings(max_examples=ROUND, database=None, deadline=None, suppress_health_check=list(HealthCheck))
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
            keep(target.name, min(failing, key=lambda data: (len(data), data)), folder)
            raise
    return tried
