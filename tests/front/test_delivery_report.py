"""A delivery with what came of it, as programs and people are told."""

import json

import pytest

from whenidle.delivery_report import delivery_document, outcome_words
from whenidle_actors.stores.task_rows import Receipt
from whenidle_protocol.message_history import Fate, MessageHistory

RECEIPT = Receipt("task-1", 0, 5, json.dumps({"taskId": "task-1", "targetSessionId": "ada"}))
NOTE = {
    "command": "cat",
    "run": 2,
    "exitStatus": 3,
    "again": False,
    "timedOut": False,
    "durationMillis": 7,
    "stdout": "x" * 3_000,
    "stderr": "no",
}


@pytest.mark.parametrize(
    ("history", "outcome", "words"),
    [
        (None, {"state": "unknown"}, "unknown"),
        (MessageHistory(), {"state": "waiting", "attempts": 0}, "waiting"),
        (
            MessageHistory(Fate.RUNNING, 2, 9, note="a note of another kind"),
            {"state": "running", "attempts": 2, "turn": 9},
            "running, attempt 2, run 1",
        ),
        (
            MessageHistory(Fate.ERROR, 1, 4, 1_000, "CommandFailed: no", NOTE),
            {
                "state": "error",
                "attempts": 1,
                "turn": 4,
                "endedAt": "1970-01-01T00:00:01.000Z",
                "cause": "CommandFailed: no",
                "run": 2,
                "exitStatus": 3,
                "timedOut": False,
                "durationMillis": 7,
                "stdout": "x" * 2_000,
                "stderr": "no",
            },
            "error, exit 3, attempt 1, run 2",
        ),
        (
            MessageHistory(Fate.ERROR, 1, 4, note={**NOTE, "run": 1, "exitStatus": -15, "timedOut": True}),
            None,
            "error, exit -15, out of time",
        ),
        (
            MessageHistory(
                Fate.ERROR, 1, 4, note={"exitStatus": "\x1b[2J", "run": "many", "timedOut": [], "stdout": 5}
            ),
            {"state": "error", "attempts": 1, "turn": 4, "stdout": "5"},
            "error",
        ),
        (
            MessageHistory(Fate.COMPLETED, 1, 4, note={"exitStatus": 0, "run": None}),
            {"state": "completed", "attempts": 1, "turn": 4, "run": None, "exitStatus": 0},
            "completed, exit 0",
        ),
        (
            MessageHistory(Fate.ERROR, 1, 4, note={"exitStatus": None, "run": 1, "again": False, "error": "gone"}),
            {"state": "error", "attempts": 1, "turn": 4, "run": 1, "exitStatus": None},
            "error",
        ),
    ],
)
def test_the_receipt_comes_with_its_outcome(
    history: MessageHistory | None, outcome: dict[str, object] | None, words: str
) -> None:
    """What the turn made of the message, and what its command wrote last, cut to what fits a table or a page."""
    document = delivery_document(RECEIPT, history)
    assert (document["taskId"], document["targetSessionId"]) == ("task-1", "ada")
    if outcome is not None:
        assert document["outcome"] == outcome
    assert outcome_words(document["outcome"]) == words
