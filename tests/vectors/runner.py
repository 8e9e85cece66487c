"""Running files of reference answers, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_protocol.json_text import parse

from .checks import CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .checks import Row

SHOWN = 3
"""How many differences of one file are told; one fault usually shows in many rows."""


class UnreadableRow(Exception):
    """A line that is not a JSON object: the file is not in the format."""


@attrs.frozen
class Report:
    """What became of one file."""

    name: str
    passed: int = 0
    differences: tuple[str, ...] = ()
    """One line for each row that came out otherwise."""
    skipped: str = ""
    """Why the file was not run; empty if it was."""

    @property
    def failed(self) -> int:
        """How many rows came out otherwise."""
        return len(self.differences)

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.name}.jsonl: skipped ({self.skipped})"
        lines = [f"{self.name}.jsonl: {self.passed} passed, {self.failed} failed"]
        lines += [f"  {difference}" for difference in self.differences[:SHOWN]]
        if self.failed > SHOWN:
            lines.append(f"  and {self.failed - SHOWN} more")
        return "\n".join(lines)


def names_in(directory: Path) -> list[str]:
    """Return the names to report on: those of the format, then other `.jsonl` files there."""
    found = {path.stem for path in directory.glob("*.jsonl")}
    return [*CHECKS, *sorted(found.difference(CHECKS))]


def run_file(directory: Path, name: str) -> Report:
    """Run the file called `name` in `directory`.

    Raises:
        UnreadableRow: a line is not a JSON object.
    """
    path = directory / f"{name}.jsonl"
    if not path.exists():
        return Report(name, skipped="missing")
    check = CHECKS.get(name)
    if check is None:
        return Report(name, skipped="no such file in the format")
    passed, differences = 0, list[str]()
    for number, row in _rows(path):
        try:
            difference = check(row)
        except (KeyError, TypeError) as error:
            difference = f"not a row of this file: {type(error).__name__}: {error}"
        if difference is None:
            passed += 1
        else:
            differences.append(f"line {number}: {difference}")
    return Report(name, passed, tuple(differences))


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    # Lines end with LF alone: text of a row may hold other line separators unescaped.
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse(line.decode())
        except ValueError as error:
            raise UnreadableRow(f"{path.name} line {number}: not JSON: {error}") from None
        if type(row) is not dict:
            raise UnreadableRow(f"{path.name} line {number}: not a JSON object")
        yield number, row
