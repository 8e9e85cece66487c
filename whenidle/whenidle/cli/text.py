"""Untrusted text made fit for a terminal, and the few ways in which people are told times and lengths.

Prompts, messages, ids and the output of commands come from models and strangers. Whatever prints them goes
through `visible` (for people) or `json_line` (for programs): neither lets a control character out.
"""

import json
import re
from datetime import datetime

_UNSAFE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: cursor movement, colours, titles, clipboard
    "\xad\u061c\u180e\u200b\u200e\u200f"  # invisible, or changing the direction of what follows
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # separators, bidirectional overrides, annotations
    "\ud800-\udfff"  # lone surrogates cannot be encoded at all
    "\U000e0000-\U000e007f"  # invisible tags
    "]"
)
"""What never reaches a terminal. Joiners (U+200C, U+200D) stay: emoji and several scripts need them."""

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_BYTE = 0x100
_PLANE = 0x10000


def visible(text: str) -> str:
    r"""Return `text` on one line, with each unsafe character written out: `\n`, `\x1b`, `\u202e`.

    A back slash stays as it is, so the form is for reading; `--json` is the exact one.
    """
    return _UNSAFE.sub(lambda match: _written(match[0]), text)


def _written(character: str) -> str:
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE else f"\\U{code:08x}"


def shortened(text: str, limit: int) -> str:
    """Return `text` visibly, cut after `limit` characters with a note of how many are left out."""
    if len(text) <= limit:
        return visible(text)
    return f"{visible(text[:limit])}… (+{len(text) - limit} characters)"


def json_line(value: object, *, ascii_only: bool = False) -> str:
    """Return `value` as JSON on one line, readable where that is safe and escaped where it is not."""
    return safe_json(json.dumps(value, ensure_ascii=ascii_only, separators=(", ", ": ")))


def safe_json(line: str) -> str:
    """Return a line of JSON with what is unsafe in it escaped; it means the same."""
    # Only inside strings can such a character stand, and there a \u escape means the same.
    return _UNSAFE.sub(lambda match: _json_escape(match[0]), line)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def duration(seconds: float) -> str:
    """Return a length of time for people: `0.4s`, `12s`, `4m 10s`, `3h 05m`, `12d 4h`."""
    if seconds < 10:  # noqa: PLR2004 - below ten seconds a tenth matters
        return f"{max(seconds, 0):.1f}s"
    whole = int(seconds)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d {hours % 24}h"
    if hours:
        return f"{hours}h {minutes % 60:02d}m"
    return f"{minutes}m {whole % 60:02d}s" if minutes else f"{whole}s"


def until(target: datetime, now: datetime) -> str:
    """Return where `target` lies seen from `now`: `in 4m 10s`, `due now`, or `overdue by 12s`."""
    seconds = (target - now).total_seconds()
    if seconds == 0:
        return "due now"
    return f"in {duration(seconds)}" if seconds > 0 else f"overdue by {duration(-seconds)}"
