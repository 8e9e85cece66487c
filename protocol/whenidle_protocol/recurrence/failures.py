"""Why a rule is refused."""

from __future__ import annotations

from whenidle_protocol.errors import ReminderCode, ToolError


class RuleError(ToolError, ValueError):
    """A rule that cannot be taken; the message names the bad part and says what to write instead.

    `code` is one of `invalid_rule`, `invalid_time_zone`, `not_future`, `time_out_of_range` and
    `frequency_too_high` (SPEC 6.9). A tool answers it as it is; callers of the Python API may catch
    it as a `ValueError`.
    """


def invalid(message: str) -> RuleError:
    """Return the refusal `invalid_rule`."""
    return RuleError(ReminderCode.INVALID_RULE, message)


SHOWN = 40
"""The longest piece of somebody's text that a message repeats."""


def quoted(text: str) -> str:
    """Return `text` as a message may repeat it: printable, and not longer than fits a line."""
    return ascii(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")
