"""JSON values as Python holds them: what counts as an object, and as an integer."""

from __future__ import annotations

from typing import Any, cast

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest n for which n and n + 1 are both exact as a double (ECMA-262 21.1.2.6)."""


def safe_integer(value: Any) -> int | None:
    """Return `value` as an int if it is a JSON number that is a safe integer, else None (SPEC 5.2).

    A float that is a whole number counts, because JSON `5.0` is the integer 5. A bool does not.
    """
    if type(value) is float:
        if not value.is_integer():
            return None
        value = int(value)
    elif type(value) is not int:
        return None
    return value if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER else None


def json_object(value: Any) -> dict[str, Any] | None:
    """Return `value` if it is a JSON object, else None."""
    return cast("dict[str, Any]", value) if type(value) is dict else None
