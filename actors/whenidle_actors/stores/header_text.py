"""The JSON shape of a session header: one shape, in the database and in exported files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from whenidle_actors.stores.base import SessionHeader
from whenidle_clock.instants import format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


def header_to_wire(header: SessionHeader) -> dict[str, Any]:
    """Return `header` as JSON values, every key present, in a fixed order."""
    return {
        "id": header.id,
        "createdAt": format_instant(header.created_at),
        "parent": header.parent,
        "delegationDepth": header.delegation_depth,
        "cwd": header.cwd,
        "preset": header.preset,
        "seedLength": header.seed_length,
        "forkedFrom": header.forked_from,
    }


def header_from_wire(value: object) -> SessionHeader:
    """Return the header that `value` describes.

    Raises:
        ValueError: it is not exactly that shape; the message names the key.
    """
    if not isinstance(value, dict):
        raise ValueError("the session header is not a JSON object")  # noqa: TRY004 - as in `_text`
    fields = cast("dict[str, Any]", value)
    refuse_other_keys(fields, required=_READERS, where="the session header")
    read = {key: _read_field(key, fields[key]) for key in _READERS}
    return SessionHeader(
        id=read["id"],
        created_at=read["createdAt"],
        parent=read["parent"],
        delegation_depth=read["delegationDepth"],
        cwd=read["cwd"],
        preset=read["preset"],
        seed_length=read["seedLength"],
        forked_from=read["forkedFrom"],
    )


def refuse_other_keys(
    fields: Mapping[str, Any], *, required: Collection[str], optional: Collection[str] = (), where: str
) -> None:
    """Check that `fields` has every required key and no key that is not known.

    Raises:
        ValueError: naming the first such key and `where` it is missing or too many.
    """
    for key in required:
        if key not in fields:
            raise ValueError(f"{where} has no {key!r}")
    for key in fields:
        if key not in required and key not in optional:
            raise ValueError(f"{where} has an unknown key {key!r}")


def _read_field(key: str, value: object) -> Any:
    try:
        return _READERS[key](value)
    except ValueError as error:
        raise ValueError(f"{key!r} of the session header {error}") from error


def _name(value: object) -> str:
    if not value:
        raise ValueError("is empty")
    return _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"is {value!r}, not text")  # noqa: TRY004 - a wrong file, not a wrong call
    return whole_characters(value)


def whole_characters(text: str) -> str:
    """Return `text` if it can be stored: it holds no half of a character (RFC 3629 section 3).

    Raises:
        ValueError: it does.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"has half a character at {error.start + 1}, which no store can hold") from error
    return text


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"is {value!r}, not a whole number of 0 or more")
    return value


def _instant(value: object) -> object:
    text = _text(value)
    try:
        return parse_instant(text)
    except ValueError as error:
        raise ValueError(f"is not an instant: {error}") from error


_READERS: dict[str, Callable[[object], Any]] = {
    "id": _name,
    "createdAt": _instant,
    "parent": _text_or_none,
    "delegationDepth": _count,
    "cwd": _text,
    "preset": _text,
    "seedLength": _count,
    "forkedFrom": _text_or_none,
}
