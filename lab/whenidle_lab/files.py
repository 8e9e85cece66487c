"""Recordings in files: written whole or not at all, and read with suspicion."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

from whenidle_lab import script
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.recording import FORMAT, FORMAT_VERSION, Recording, versions
from whenidle_lab.strategies.plan import MAX_SEED

if TYPE_CHECKING:
    from pathlib import Path

_T = TypeVar("_T")

MAX_BYTES = 16 * 1024 * 1024
"""Of a file that is read; far above what is written."""


class RecordingError(ValueError):
    """A file that is no recording, or not one that can be read here."""


def load(file: Path) -> Recording:
    """Read a recording from a file.

    Raises:
        RecordingError: it is none.
        OSError: the file cannot be read.
    """
    with file.open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise RecordingError(f"{file} is no recording of the lab: it has more than {MAX_BYTES} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise RecordingError(f"{file} is no recording of the lab: byte {error.start + 1} is not UTF-8") from None
    return recording_of(text, str(file))


def save(recording: Recording, file: Path) -> None:
    """Write a recording to a file, all of it or nothing; makes its folder.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    try:
        part.write_text(recording.to_text(), encoding="ascii")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def recording_of(text: str, name: str) -> Recording:
    """Return the recording that `Recording.to_text` has written; `name` is what it is called if it is none.

    Raises:
        RecordingError: it is damaged, or in a format that this version does not know.
    """
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{name} is no recording of the lab: {error}") from None
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("format") != FORMAT:
        raise RecordingError(f"{name} is no recording of the lab: it lacks the format {FORMAT!r}")
    try:
        return _from_document(cast("dict[str, Any]", document))
    except _Newer as newer:
        raise RecordingError(f"{name} {newer}") from None
    except ValueError as error:
        raise RecordingError(f"{name} is damaged: {error}") from None


class _Newer(Exception):
    """A recording of a later version of the lab."""


def _from_document(document: dict[str, Any]) -> Recording:
    known = _versions(_object(document, "versions"))
    number = _field(document, "format_version", int)
    if number > FORMAT_VERSION:
        made_by = known.get("whenidle", "a later version")
        raise _Newer(
            f"has format {number}, and this whenidle, {versions()['whenidle']}, reads formats up to"
            f" {FORMAT_VERSION}; it was made by {made_by}"
        )
    extra = sorted(set(document) - _FIELDS)
    if extra:
        raise ValueError(f"there is a field {extra[0]!r}, which means nothing")
    lines = document.get("choices")
    choices = None if lines is None else script.read(_strings(cast("list[object]", _field(document, "choices", list))))
    reference = None if document.get("import") is None else _field(document, "import", str)
    return Recording(
        _field(document, "scenario", str),
        reference,
        _field(document, "strategy", str),
        _natural(document, "seed"),
        choices,
        _natural(document, "then_quiet"),
        _finding(_object(document, "finding")),
        _field(document, "digest", str),
        _field(document, "marks", str),
        known,
    )


_FIELDS = frozenset(
    {
        *("format", "format_version", "scenario", "import", "strategy", "seed"),
        *("finding", "choices", "then_quiet", "digest", "marks", "versions"),
    }
)

_KINDS: dict[type, str] = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}


def _field(document: dict[str, Any], name: str, kind: type[_T]) -> _T:
    if name not in document:
        raise ValueError(f"there is no {name!r}")
    value: Any = document[name]
    if type(value) is not kind:
        raise ValueError(f"{name!r} is not {_KINDS[kind]}")
    return value


def _object(document: dict[str, Any], name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", _field(document, name, dict))


def _natural(document: dict[str, Any], name: str) -> int:
    value = _field(document, name, int)
    if not 0 <= value <= MAX_SEED:
        raise ValueError(f"{name!r} is not a whole number from 0 to {MAX_SEED}")
    return value


def _strings(values: list[object]) -> list[str]:
    found = [value for value in values if isinstance(value, str)]
    if len(found) < len(values):
        raise ValueError("'choices' are not lines of text")
    return found


def _versions(document: dict[str, Any]) -> dict[str, str]:
    return {name: _field(document, name, str) for name in sorted(document)}


def _finding(document: dict[str, Any]) -> Finding:
    kind = _field(document, "kind", str)
    if kind not in set(FindingKind):
        raise ValueError(f"there is no kind of finding {kind[:40]!r}")
    return Finding(FindingKind(kind), _field(document, "name", str), _field(document, "text", str))
