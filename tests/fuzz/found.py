"""Inputs that were found to break something: kept as files, and run with the normal tests from then on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "found"


def found_inputs(name: str, folder: Path = FOLDER) -> tuple[Path, ...]:
    """Return the files that hold the inputs found for a target, in a fixed order."""
    return tuple(sorted(each for each in (folder / name).glob("*") if each.is_file()))


def keep(name: str, data: bytes, folder: Path = FOLDER) -> Path:
    """Write an input that was found for a target, and return its file."""
    path = folder / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
