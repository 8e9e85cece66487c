"""What may be chosen for a task or for all tasks of a host, checked where it is said (SPEC 1.6, 6.7).

What is wrong is refused before it is stored: a number that no JSON reader takes back would make a damaged task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_clock.zones import Gap, Overlap
from whenidle_protocol.json_values import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable

    import attrs


def to_gap(value: Gap | str) -> Gap:
    """Return a policy given as itself or by its name.

    Raises:
        ValueError: there is no such policy.
    """
    return Gap(value)


def to_overlap(value: Overlap | str | None) -> Overlap | None:
    """Return a policy given as itself or by its name; None leaves it open.

    Raises:
        ValueError: there is no such policy.
    """
    return None if value is None else Overlap(value)


def to_gap_or_none(value: Gap | str | None) -> Gap | None:
    """Return a policy given as itself or by its name; None leaves it open.

    Raises:
        ValueError: there is no such policy.
    """
    return None if value is None else Gap(value)


def whole_number(low: int) -> Callable[[Any, attrs.Attribute[Any], int | None], None]:
    """Return a validator of fields that are whole numbers from `low` on, or None where the field may be."""

    def check(_: Any, attribute: attrs.Attribute[Any], value: int | None) -> None:
        if value is not None and not (type(value) is int and low <= value <= MAX_SAFE_INTEGER):
            raise ValueError(f"{attribute.name} is {value!r}; it is a whole number from {low} to {MAX_SAFE_INTEGER}")

    return check
