"""What an exploration has found so far, one of a kind, each in a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from whenidle_lab.files import save
from whenidle_lab.report import Found

if TYPE_CHECKING:
    from pathlib import Path

    from whenidle_lab.recording import Recording


class Gallery:
    """Recordings of different findings.

    Args:
        folder: where their files are written, as soon as they are found; None writes none.
        most: how many are kept; of findings beyond, the number alone.
    """

    def __init__(self, folder: Path | None, most: int) -> None:
        self._folder = folder
        self._most = most
        self._found: list[Found] = []
        self.unrecorded: int = 0
        """Runs whose finding was one too many."""

    def add(self, recording: Recording, runs: int) -> None:
        """Add what was found in the run of number `runs`; of those alike, the lowest seed is kept.

        Raises:
            OSError: the file cannot be written.
        """
        for index, known in enumerate(self._found):
            if known.finding.is_like(recording.finding):
                self._found[index] = self._again(known, recording)
                return
        if len(self._found) < self._most:
            self._found.append(Found(recording, 1, runs, self._write(recording)))
        else:
            self.unrecorded += 1

    def found(self) -> tuple[Found, ...]:
        """Return what there is, by seeds."""
        return tuple(sorted(self._found, key=lambda found: found.seed))

    def _again(self, known: Found, recording: Recording) -> Found:
        if recording.seed > known.seed:
            return attrs.evolve(known, times=known.times + 1)
        file = self._write(recording)
        if known.file is not None and known.file != file:
            known.file.unlink(missing_ok=True)
        return attrs.evolve(known, times=known.times + 1, recording=recording, file=file)

    def _write(self, recording: Recording) -> Path | None:
        if self._folder is None:
            return None
        file = self._folder / file_name(recording)
        save(recording, file)
        return file


def file_name(recording: Recording) -> str:
    """Return what the file of a recording is called."""
    words = (recording.scenario, recording.finding.name, str(recording.seed))
    return "-".join(re.sub(r"[^A-Za-z0-9_.-]+", "_", word)[:60] for word in words) + ".json"
