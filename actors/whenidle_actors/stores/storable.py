"""What no database can hold, refused by stores that could."""

from __future__ import annotations

from typing import Final

from whenidle_actors.errors import CommitRefused

_MIN_NUMBER: Final = -(2**63)
_MAX_NUMBER: Final = 2**63 - 1


def require_storable(*values: str | int | None) -> None:
    """Check that each of `values` is text that has UTF-8, or a number of 64 bits.

    Raises:
        CommitRefused: one is not.
    """
    for value in values:
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise CommitRefused(f"memory: the commit changed nothing: {error}") from error
        elif value is not None and not _MIN_NUMBER <= value <= _MAX_NUMBER:
            raise CommitRefused(f"memory: the commit changed nothing: {value} does not fit 64 bits")
