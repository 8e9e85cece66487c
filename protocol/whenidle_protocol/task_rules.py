"""The rule of a task as JSON: the fields that everybody sees, and those that are only kept (SPEC 6.3)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import attrs

from whenidle_clock.instants import format_instant, parse_instant
from whenidle_protocol.json_values import json_object
from whenidle_protocol.rules.cron import CronRule
from whenidle_protocol.rules.daily import DailyRule
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.once import AfterRule, AtRule
from whenidle_protocol.rules.rrule import RRuleRule
from whenidle_protocol.rules.simple import simplify
from whenidle_protocol.rules.weekly import WeeklyRule

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import time

    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.task_timing import Policies

REMEMBERED_RULES: Final = 1024
"""How many decoded rules are kept: tasks often share one, and a rule keeps what it worked out about its year."""


@attrs.frozen
class _Field:
    """One field of a rule, under its name on the wire."""

    attribute: str
    accepts: type
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value
    optional: bool = False


def _time_text(value: time) -> str:
    return value.isoformat("seconds" if value.second else "minutes")


def _numbers(value: list[Any]) -> tuple[int, ...]:
    # Checked here, because True and 1.0 would pass for a 1 among the rules that are remembered.
    if any(type(each) is not int for each in value):
        raise ValueError("not an array of whole numbers")
    return tuple(value)


def _instant(attribute: str, *, optional: bool = False) -> _Field:
    return _Field(attribute, str, format_instant, parse_instant, optional)


_TIME_OF_DAY: Final = {"time": _Field("time", str, _time_text), "timeZone": _Field("time_zone", str)}

_SHAPES: Final[dict[str, type[Any]]] = {
    shape.kind: shape for shape in (AfterRule, AtRule, EveryRule, DailyRule, WeeklyRule, CronRule, RRuleRule)
}
_SHOWN: Final[dict[str, dict[str, _Field]]] = {
    "after": {"afterSeconds": _Field("after_seconds", int)},
    "at": {},
    "every": {"everySeconds": _Field("every_seconds", int)},
    "daily": _TIME_OF_DAY,
    "weekly": {**_TIME_OF_DAY, "weekdays": _Field("weekdays", list, list, _numbers)},
    "cron": {"expression": _Field("expression", str), "timeZone": _Field("time_zone", str)},
    "rrule": {"rrule": _Field("rrule", str), "timeZone": _Field("time_zone", str)},
}
"""The timing fields of each kind that SPEC 6.3 names."""
_KEPT: Final[dict[str, dict[str, _Field]]] = {
    "after": {"scheduledAt": _instant("scheduled_at")},
    "at": {"scheduledAt": _instant("scheduled_at")},
    "every": {"anchor": _instant("anchor")},
    "daily": {"start": _instant("start", optional=True)},
    "weekly": {"start": _instant("start", optional=True)},
}
"""The fields a kind has besides: the moments it counts from. Optional ones are absent where they are not set."""


def read_rrule(text: str) -> RRuleRule:
    """Return the rule that two lines of RFC 5545 say, as they say it; see `simplified`.

    Raises:
        ToolError: `invalid_rule`, `invalid_time_zone`, `time_out_of_range` or `frequency_too_high`.
    """
    return RRuleRule.parse(text)


def simplified(rule: Rule, chosen: Policies) -> Rule:
    """Return the kind as which `rule` is stored: the simplest one that means the same (SPEC 6.3)."""
    return simplify(rule, **chosen) if isinstance(rule, RRuleRule) else rule


def timing_fields(rule: Rule) -> dict[str, Any]:
    """Return the kind's own timing fields, as answers give them."""
    return {name: field.write(getattr(rule, field.attribute)) for name, field in _SHOWN[rule.kind].items()}


def encode_rule(rule: Rule) -> dict[str, Any]:
    """Return `rule` as the JSON object that is stored."""
    values = {name: (field, getattr(rule, field.attribute)) for name, field in _KEPT.get(rule.kind, {}).items()}
    kept = {name: field.write(value) for name, (field, value) in values.items() if value is not None}
    return {"kind": rule.kind, **timing_fields(rule), **kept}


def decode_rule(value: Any) -> Rule:
    """Return the rule that a stored JSON object stands for.

    Raises:
        ValueError: it is not exactly that; the message names the field.
    """
    given = json_object(value) or {}
    kind = given.get("kind")
    if type(kind) is not str or kind not in _SHAPES:
        raise ValueError(f"is not an object whose kind is one of {', '.join(_SHAPES)}")
    known = {**_SHOWN[kind], **_KEPT.get(kind, {})}
    must = {"kind", *(name for name, field in known.items() if not field.optional)}
    if not must <= given.keys() <= {"kind", *known}:
        raise ValueError(f"of kind {kind} does not have exactly the fields {', '.join(('kind', *known))}")
    read = tuple((field.attribute, _read(name, field, given[name])) for name, field in known.items() if name in given)
    try:
        return _made(kind, read)
    except ValueError as error:
        raise ValueError(f"of kind {kind} is refused: {error}") from error


def _read(name: str, field: _Field, value: Any) -> Any:
    if type(value) is not field.accepts:
        raise ValueError(f"has a field {name} of the wrong type")
    try:
        return field.read(value)
    except ValueError as error:
        raise ValueError(f"has a field {name} that is {error}") from error


@functools.lru_cache(maxsize=REMEMBERED_RULES)
def _made(kind: str, attributes: tuple[tuple[str, Any], ...]) -> Rule:
    values = dict(attributes)
    if kind != "rrule":
        rule: Rule = _SHAPES[kind](**values)
        return rule
    parsed = RRuleRule.parse(values["rrule"])
    if parsed.time_zone != values["time_zone"]:
        raise ValueError(f"timeZone is not {parsed.time_zone}, the zone of its DTSTART")
    return parsed
