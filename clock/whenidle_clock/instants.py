"""Instants: timezone-aware UTC `datetime`s of whole milliseconds, years 0001 to 9999 (SPEC 1.1).

Inside, an instant is often an integer of milliseconds since 1970-01-01T00:00:00Z. All conversions
here are integer arithmetic: no float ever stands for an instant.
"""

import functools
import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Millisecond 0."""

MIN_INSTANT = datetime(1, 1, 1, tzinfo=UTC)
"""The first instant that can be written down."""

MAX_INSTANT = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
"""The last instant that can be written down."""

_MILLISECOND = timedelta(milliseconds=1)
_DAY = 86_400_000
_KEPT_TEXTS = 1024

MIN_MILLIS = (MIN_INSTANT - EPOCH) // _MILLISECOND
"""`MIN_INSTANT` in milliseconds since the epoch."""

MAX_MILLIS = (MAX_INSTANT - EPOCH) // _MILLISECOND
"""`MAX_INSTANT` in milliseconds since the epoch."""

# The hour is checked here because from Python 3.14 on the library reads 24:00 as the next day.
_WIRE_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z",
)


class InstantOutOfRange(ValueError):
    """The instant lies outside years 0001-9999 UTC (SPEC 1.6)."""


def to_millis(instant: datetime) -> int:
    """Give the whole milliseconds from the epoch to an aware instant, a finer part floored.

    Raises:
        ValueError: `instant` is naive.
        InstantOutOfRange: its offset carries it outside years 0001-9999 UTC.
    """
    if instant.tzinfo is UTC:  # within the years, and the usual case: half the time
        since = instant - EPOCH
        return since.days * _DAY + since.seconds * 1000 + since.microseconds // 1000
    if instant.utcoffset() is None:
        raise ValueError(
            f"an instant needs a time zone: {instant.isoformat()} has none; "
            f"write {instant.isoformat()}+00:00 or set tzinfo=datetime.UTC",
        )
    return check_millis((instant - EPOCH) // _MILLISECOND)


def from_millis(millis: int) -> datetime:
    """Give the UTC instant that many milliseconds after the epoch.

    Raises:
        InstantOutOfRange: the instant lies outside years 0001-9999.
    """
    check_millis(millis)
    seconds, rest = divmod(millis, 1000)
    return EPOCH + timedelta(0, seconds, rest * 1000)


def check_millis(millis: int) -> int:
    """Pass on milliseconds since the epoch that lie within years 0001-9999.

    Raises:
        InstantOutOfRange: they do not.
    """
    if MIN_MILLIS <= millis <= MAX_MILLIS:
        return millis
    raise InstantOutOfRange(
        f"{millis} ms from 1970-01-01T00:00:00Z is outside years 0001-9999: "
        f"an instant lies from {format_instant(MIN_INSTANT)} to {format_instant(MAX_INSTANT)}",
    )


@functools.lru_cache(maxsize=_KEPT_TEXTS)
def format_instant(instant: datetime) -> str:
    """Write an aware instant in the wire form `YYYY-MM-DDTHH:mm:ss.SSSZ`, a finer part floored.

    What many things share, the moment of a decision and the times at which people like to be reminded, is
    written once and kept.

    Raises:
        ValueError: `instant` is naive.
        InstantOutOfRange: its offset carries it outside years 0001-9999 UTC.
    """
    if instant.tzinfo is not UTC:
        instant = from_millis(to_millis(instant))
    return f"{instant.isoformat('T', 'milliseconds')[: -len('+00:00')]}Z"


@functools.lru_cache(maxsize=_KEPT_TEXTS)
def parse_instant(text: str) -> datetime:
    """Read the wire form `YYYY-MM-DDTHH:mm:ss.SSSZ` and nothing else (RFC 3339 with SPEC 1.1).

    Exactly three digits of a second, upper-case `T` and `Z`, ASCII digits; no leap second, no
    24:00, no year 0000. Kept like `format_instant`.

    Raises:
        ValueError: `text` is not in that form, or names a day that does not exist.
    """
    if _WIRE_FORM.fullmatch(text) is None:
        raise ValueError(f"not an instant: {text[:80]!r}; write it like 2026-03-08T07:30:00.000Z")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"not an instant: {text!r}: {error}") from error
