"""Rules as tools take them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenidle_lab.world import World

ZONES = ("America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Africa/Casablanca")
"""Zones that change their clocks; one by half an hour, and one for a month."""


def soon(world: World, seconds: float, rule: str) -> str:
    """Return a rule that is anchored so many seconds from now, down to a whole one."""
    at = datetime.fromtimestamp((world.clock.now_millis() + int(seconds * 1000)) // 1000, UTC)
    return f"DTSTART:{_text(at)}Z\nRRULE:{rule}"


def local(at: datetime, zone: str, rule: str) -> str:
    """Return a rule that is anchored at a local time."""
    return f"DTSTART;TZID={zone}:{_text(at)}\nRRULE:{rule}"


def _text(at: datetime) -> str:
    # Not by `strftime`, which the C library may not fill up with zeros.
    return f"{at.year:04}{at.month:02}{at.day:02}T{at.hour:02}{at.minute:02}{at.second:02}"
