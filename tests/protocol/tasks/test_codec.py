from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle_protocol import wire
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.json_text import parse, stringify
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.rules.weekly import WeeklyRule
from whenidle_protocol.task_codec import CorruptTask, decode_task, encode_task
from whenidle_protocol.task_json import canonical_fields
from whenidle_protocol.task_record import LastDelivery, Target, TargetKind
from whenidle_protocol.task_rules import read_rrule
from whenidle_protocol.task_text import read_task, write_task

from .strategies import tasks
from .worlds import DAY, NOW, TWICE, kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from whenidle_protocol.task_record import Task


@given(tasks)
def test_a_task_comes_back_from_its_text(task: Task) -> None:
    """Whatever its kind, target and state; and its text is one."""
    text = encode_task(task)
    assert decode_task(text) == task
    assert encode_task(decode_task(text)) == text
    assert text.encode()


def test_the_text_of_a_task() -> None:
    """Canonical JSON of version 1, without what is not set."""
    task = kept(
        rule=WeeklyRule("09:00", "Europe/Paris", (5, 1), start=NOW), last_delivery=LastDelivery(NOW, NOW, "s-1")
    )
    assert encode_task(task) == (
        '{"createdAt":"2026-01-01T00:00:00.000Z","creator":"s-1","id":"task-1","lastDelivery":{"deliveredAt":'
        '"2026-01-01T00:00:00.000Z","scheduledAt":"2026-01-01T00:00:00.000Z","targetSessionId":"s-1"},'
        '"prompt":"Do it.","rule":{"kind":"weekly","start":"2026-01-01T00:00:00.000Z","time":"09:00",'
        '"timeZone":"Europe/Paris","weekdays":[1,5]},"scheduledAt":"2026-01-01T01:00:00.000Z","status":"active","target":{"kind":"this_session",'
        '"sessionId":"s-1"},"title":"Title","updatedAt":"2026-01-01T00:00:00.000Z","version":1}'
    )


@given(tasks)
def test_the_quick_way_writes_what_the_long_way_writes(task: Task) -> None:
    """Byte for byte; and it reads what it has written."""
    text = canonical_fields({"version": 1, **wire.unstructure(task)})
    assert write_task(task) in {text, None}
    assert encode_task(task) == text
    assert read_task(text) in {task, None}


def test_the_quick_way_is_the_usual_way() -> None:
    """It writes and reads an ordinary task; a lone surrogate is for the long way."""
    task = kept(rule=EveryRule(3600, NOW), prompt="Ä 😀 \x00\u2028.")
    text = write_task(task)
    assert text is not None
    assert read_task(text) == task
    odd = kept(rule=EveryRule(3600, NOW), prompt="\ud800")
    assert write_task(odd) is None
    assert read_task(encode_task(odd)) is None
    assert decode_task(encode_task(odd)) == odd


@given(tasks, st.data())
def test_the_quick_way_reads_nothing_that_the_long_way_refuses(task: Task, data: st.DataObject) -> None:
    """A text in which one thing was changed is read as the same task by both ways, or left to the one that says why."""
    fields = parse(encode_task(task))
    holders = [fields, *(value for value in fields.values() if isinstance(value, dict))]
    holder = data.draw(st.sampled_from(holders))
    key = data.draw(st.sampled_from([*holder, "extra"]))
    holder[key] = data.draw(odd_values)
    text = stringify(fields)
    quick = read_task(text)
    if quick is not None:
        read = parse(text)  # a number that was drawn as 60.0 is 60 there
        read.pop("version")
        assert quick == wire.structure(read, type(task))


odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just([]),
    st.just({}),
    st.sampled_from(["", " ", "x", "active", "first", "skip", "this_session", "2026-02-30T00:00:00.000Z", "\ud800"]),
    st.sampled_from(["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00.000+01:00"]),
)


def test_numbers_with_a_point_are_read_as_they_always_were() -> None:
    """JSON `2.0` is the integer 2, also where the quick way does not know it."""
    task = kept(rule=EveryRule(3600, NOW), missed=2)
    text = encode_task(task).replace('"missed":2', '"missed":2.0')
    assert read_task(text) is None
    assert decode_task(text) == task


def test_a_text_that_nests_deep_is_refused() -> None:
    """Also where a later value of the same key would count."""
    for depth in (1000, 100_000):
        rule = "[" * depth + "]" * depth
        text = encode_task(kept(rule=EveryRule(3600, NOW))).replace('"rule":{', f'"rule":{{"kind":{rule},', 1)
        with pytest.raises(CorruptTask):
            decode_task(text)


def test_equal_texts_of_rules_share_one_rule() -> None:
    """A thousand tasks with one text keep one timeline."""
    one, other = (decode_task(encode_task(kept(id=name, rule=read_rrule(TWICE)))) for name in ("a", "b"))
    assert one.rule is other.rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "task: is not JSON: "),
        ("{", "task: is not JSON: "),
        ("[]", "task: version is not 1 @ $.version; a newer whenidle may have written it"),
        ('{"id":"a"}', "task: version is not 1 @ $.version; a newer whenidle may have written it"),
        ('{"version":2}', "task: version is not 1 @ $.version; a newer whenidle may have written it"),
        ('{"version":true}', "task: version is not 1 @ $.version"),
    ],
)
def test_what_is_no_task_of_version_1_is_refused(text: str, why: str) -> None:
    """Text that is not JSON, and versions that are not known."""
    with pytest.raises(CorruptTask) as caught:
        decode_task(text)
    assert caught.value.why.startswith(why)
    assert isinstance(caught.value, CorruptLog)


def without(key: str) -> Callable[[dict[str, Any]], object]:
    """Leave a field out."""
    return lambda fields: fields.pop(key)


def having(path: str, value: Any) -> Callable[[dict[str, Any]], object]:
    """Set a field, given by its path."""

    def change(fields: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            fields = fields[name]
        fields[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without("id"), "task: required field missing @ $.id"),
        (without("createdAt"), "task: required field missing @ $.createdAt"),
        (having("extra", 1), "task: no such field: 'extra' @ $"),
        (having("target.extra", 1), "task: no such field: 'extra' @ $.target"),
        (having("lastDelivery.extra", 1), "task: no such field: 'extra' @ $.lastDelivery"),
        (having("id", "a b"), "task: id is not 1 to 64 of A-Z a-z 0-9 . _ : - without a leading dot @ $"),
        (having("title", 5), "task: is a number, not a string @ $.title"),
        (having("status", "asleep"), "task: is not one of active, paused, ended @ $.status"),
        (having("gap", None), "task: is not one of skip, shift @ $.gap"),
        (having("catchUpSeconds", "5"), "task: is a string, not a safe integer @ $.catchUpSeconds"),
        (having("deliveries", 1.5), "task: is 1.5, not a safe integer @ $.deliveries"),
        (having("missed", -1), "task: missed is -1, below 0 @ $"),
        (
            having("coveredAt", "now"),
            "task: not an instant: 'now'; write it like 2026-03-08T07:30:00.000Z @ $.coveredAt",
        ),
        (having("target", "new"), "task: is a string, not an object @ $.target"),
        (having("target.kind", "old"), "task: is not one of this_session, new_once, new @ $.target.kind"),
        (having("target.created", 1), "task: is a number, not true or false @ $.target.created"),
        (
            having("target.kind", "new"),
            "task: session_id must be given for this_session and new_once, and only there @ $.target",
        ),
        (having("lastDelivery.scheduledAt", 5), "task: is a number, not a string @ $.lastDelivery.scheduledAt"),
        (
            having("rule", []),
            "task: is not an object whose kind is one of after, at, every, daily, weekly, cron, rrule @ $.rule",
        ),
        (
            having("rule.kind", ["every"]),
            "task: is not an object whose kind is one of after, at, every, daily, weekly, cron, rrule @ $.rule",
        ),
        (
            having("rule.extra", 1),
            "task: of kind every does not have exactly the fields kind, everySeconds, anchor @ $.rule",
        ),
        (
            having("rule", {"kind": "cron"}),
            "task: of kind cron does not have exactly the fields kind, expression, timeZone @ $.rule",
        ),
        (having("rule.everySeconds", 3600.5), "task: has a field everySeconds of the wrong type @ $.rule"),
        (having("rule.everySeconds", True), "task: has a field everySeconds of the wrong type @ $.rule"),
        (
            having("rule.anchor", "soon"),
            "task: has a field anchor that is not an instant: 'soon'; write it like 2026-03-08T07:30:00.000Z @ $.rule",
        ),
        (
            having("rule.everySeconds", 59),
            "task: of kind every is refused: frequency_too_high: ",
        ),
        *(
            (
                having("rule", {"kind": "weekly", "time": "09:00", "timeZone": "UTC", "weekdays": weekdays}),
                "task: has a field weekdays that is not an array of whole numbers @ $.rule",
            )
            for weekdays in ([True, 5], [1.5], [[1]], ["1"])
        ),
        (
            having("rule", {"kind": "weekly", "time": "09:00", "timeZone": "UTC", "weekdays": []}),
            "task: of kind weekly is refused: invalid_rule: ",
        ),
        (
            having("rule", {"kind": "at"}),
            "task: of kind at does not have exactly the fields kind, scheduledAt @ $.rule",
        ),
        (
            having("rule", {"kind": "rrule", "rrule": TWICE, "timeZone": "Europe/Paris"}),
            "task: of kind rrule is refused: timeZone is not UTC, the zone of its DTSTART @ $.rule",
        ),
        (
            having("rule", {"kind": "rrule", "rrule": "RRULE:FREQ=DAILY", "timeZone": "UTC"}),
            "task: of kind rrule is refused: invalid_rule: The DTSTART line is missing",
        ),
        (
            having("rule", {"kind": "daily", "time": "09:00", "timeZone": "Mars/Olympus"}),
            "task: of kind daily is refused: invalid_time_zone: ",
        ),
    ],
)
def test_a_damaged_field_is_named(change: Callable[[dict[str, Any]], object], why: str) -> None:
    """With its path and what is wrong with it; nothing is coerced and null stands for nothing."""
    task = kept(
        rule=EveryRule(3600, NOW + DAY),
        target=Target(TargetKind.NEW_ONCE, "s-2"),
        last_delivery=LastDelivery(NOW, NOW, "s-2"),
    )
    fields = parse(encode_task(task))
    change(fields)
    with pytest.raises(CorruptTask) as caught:
        decode_task(stringify(fields))
    assert caught.value.why.startswith(why)
