"""Events of a log as people read them."""

import json

import pytest

from whenidle.cli.event_lines import event_document, event_line, told
from whenidle_protocol import EventRecord

AT = 1_772_964_000_000  # 2026-03-08T10:00:00Z


def record(type: str, data: object, *, ignorable: bool = False) -> EventRecord:  # noqa: A002 - the event's field
    """Return an event."""
    return EventRecord(type, AT, json.dumps(data), ignorable)


NOTE = {"exitStatus": 0, "durationMillis": 12, "timedOut": False, "stdout": "a\x1b", "stderr": ""}


@pytest.mark.parametrize(
    ("type", "data", "line"),
    [
        (
            "inbox/insert",
            {"id": "m0", "lane": "next-step", "wake": False, "text": "hi\n", "source": "user"},
            r"m0 (user, next-step, wakes nobody): hi\n",
        ),
        (
            "inbox/insert",
            {"id": "m0", "lane": "next-turn", "wake": True, "text": "[X]\nalways\na: 1\nb: 2", "source": "schedule"},
            r"m0 (schedule, next-turn): [X] … a: 1\nb: 2",
        ),
        ("inbox/remove", {"ids": ["m0", "m1"]}, "removed m0, m1"),
        ("inbox/replace", {"id": "m0", "text": "other"}, "m0 now says: other"),
        ("turn/start", {"turn": 1, "claimed": ["m0"], "attempt": 1}, "turn 1 takes m0"),
        ("turn/start", {"turn": 2, "claimed": ["m0"], "attempt": 2}, "turn 2 takes m0 again (attempt 2)"),
        ("turn/claim", {"turn": 1, "ids": ["m1"]}, "turn 1 takes m1 as well"),
        ("turn/abort", {"turn": 1, "cause": "enough", "removed": []}, "turn 1 is cancelled: enough"),
        ("turn/abort", {"turn": 1, "cause": "x", "removed": ["m2"]}, "turn 1 is cancelled: x; removed m2"),
        ("turn/end", {"turn": 1, "outcome": "completed"}, "turn 1 completed"),
        ("turn/end", {"turn": 1, "outcome": "error", "cause": "\x1b"}, r"turn 1 error: \x1b"),
        (
            "turn/end",
            {"turn": 1, "outcome": "interrupted", "redeliver": True},
            "turn 1 interrupted, will be given again",
        ),
        ("turn/note", {"turn": 1, "data": NOTE}, r"turn 1 ran its command: exit 0, 12 ms, stdout: a\x1b"),
        (
            "turn/note",
            {"turn": 1, "data": {**NOTE, "timedOut": True, "stderr": "b"}},
            r"turn 1 ran its command: exit 0, 12 ms, out of time, stdout: a\x1b, stderr: b",
        ),
        ("turn/note", {"turn": 1, "data": {"é": 1}}, 'turn 1 notes {"é": 1}'),
        ("schedule/change", {"version": 1, "operation": "delete", "id": "schedule-1"}, "schedule-1 forgotten"),
        ("schedule/change", {"version": 1, "operation": "dispatch", "id": "schedule-1"}, "schedule-1 delivered"),
        ("schedule/change", {"version": 2}, '{"version": 2}'),
        ("turn/end", {"turn": "one", "outcome": 5}, '{"turn": "one", "outcome": 5}'),
        ("turn/end", ["\x9b"], r'["\u009b"]'),
        ("other/thing", {"x": 1}, '{"x": 1}'),
    ],
)
def test_each_event_tells_what_happened(type: str, data: object, line: str) -> None:  # noqa: A002 - the name of the field
    """A known event is a sentence, one that is not understood is shown as it is."""
    assert told(record(type, data)) == line


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        ({"kind": "after", "afterSeconds": 60}, "after 60 s"),
        ({"kind": "every", "everySeconds": 300}, "every 300 s"),
        ({"kind": "at"}, "at a time"),
    ],
)
def test_a_new_reminder_tells_its_rule_and_when_it_is_due(schedule: dict[str, object], rule: str) -> None:
    """Id, rule, first target and prompt."""
    data = {"id": "schedule-1", "prompt": "te\x1ba", "scheduledAt": "2026-03-08T10:01:00.000Z", **schedule}
    line = told(record("schedule/change", {"version": 1, "operation": "create", "schedule": data}))
    assert line == rf"schedule-1 made ({rule}), due 2026-03-08T10:01:00.000Z: te\x1ba"


def test_a_line_begins_with_number_instant_and_type() -> None:
    """Columns line up, and a type that nobody knows cannot break out of its own."""
    line = event_line(7, record("x\x1b[2J", 1)).plain
    assert line == r"    7  2026-03-08T10:00:00.000Z  x\x1b[2J         1"


def test_a_document_says_whether_the_event_may_be_ignored() -> None:
    """`ignorable` is there only where it is true, as in an export."""
    assert event_document(0, record("x", [1], ignorable=True)) == {
        "seq": 0,
        "at": "2026-03-08T10:00:00.000Z",
        "type": "x",
        "data": [1],
        "ignorable": True,
    }
    assert "ignorable" not in event_document(0, record("x", [1]))
