"""What holds in every run (SPEC 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenidle_lab.scenario import Invariant


def standard_invariants() -> list[Invariant]:
    """Return fresh invariants that hold in every run of any scenario."""
    return []
