"""What became of a message, as its log tells."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given

from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import (
    Event,
    EventRecord,
    Lane,
    Message,
    MessagesRemoved,
    Outcome,
    ScheduleChanged,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
    encode,
)
from whenidle_protocol.message_history import Fate, MessageHistories, MessageHistory
from whenidle_protocol.task_admission import admit
from whenidle_protocol.task_frame_reading import delivered_by
from whenidle_protocol.task_framing import frame

from .strategies import trimmed
from .tasks.worlds import DAY, NOW, SETTINGS, made

M0 = Message("m0", Lane.NEXT_TURN, True, "hello", Source.USER)
M1 = Message("m1", Lane.NEXT_STEP, False, "also", Source.USER)


def history(*events: Event, message: str = "m0") -> MessageHistory | None:
    """Return the history of a message in a log of these events, one a millisecond from 100 on."""
    histories = MessageHistories(lambda found: found.id == message)
    for at_millis, event in enumerate(events, 100):
        histories.apply(encode(event, at_millis))
    return histories.found.get(message)


RUNNING = MessageHistory(Fate.RUNNING, 1, 1)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), None),
        ((M1,), None),
        ((M0,), MessageHistory()),
        ((M0, M1, MessagesRemoved(("m1",))), MessageHistory()),
        ((M0, MessagesRemoved(("m0",))), MessageHistory(Fate.REMOVED, ended_millis=101)),
        ((M0, TurnStarted(1, ("m0",), 1)), RUNNING),
        ((M0, TurnStarted(1, ("m9",), 1), StepClaimed(1, ("m0",))), RUNNING),
        ((M0, TurnStarted(1, ("m9",), 1), TurnAborted(1, "no", ("m0",))), MessageHistory(Fate.REMOVED, 0, None, 102)),
        ((M0, TurnStarted(1, ("m0",), 1), TurnNoted(1, 1), TurnNoted(1, [2])), attrs.evolve(RUNNING, note=[2])),
        ((M0, TurnStarted(1, ("m9",), 1), TurnNoted(1, 1)), MessageHistory()),
        (
            (M0, TurnStarted(1, ("m0",), 1), TurnEnded(1, Outcome.ERROR, "why")),
            MessageHistory(Fate.ERROR, 1, 1, 102, "why"),
        ),
        (
            (
                M0,
                TurnStarted(1, ("m0",), 1),
                TurnEnded(1, Outcome.COMPLETED),
                TurnStarted(2, ("m9",), 1),
                TurnNoted(2, 1),
            ),
            MessageHistory(Fate.COMPLETED, 1, 1, 102),
        ),
        (
            (
                *(M0, TurnStarted(1, ("m0",), 1), TurnNoted(1, 1)),
                *(TurnEnded(1, Outcome.INTERRUPTED, "dead", redeliver=True), TurnStarted(2, ("m0",), 2)),
            ),
            MessageHistory(Fate.RUNNING, 2, 2, note=1),
        ),
    ],
)
def test_the_last_turn_that_took_a_message_tells_its_fate(
    events: tuple[Event, ...], expected: MessageHistory | None
) -> None:
    """Attempts count over all turns, and a note stays until another one comes."""
    assert history(*events) == expected


def test_every_outcome_of_a_turn_is_a_fate() -> None:
    """No outcome is left out."""
    assert {outcome.value for outcome in Outcome} < {fate.value for fate in Fate}


def test_what_says_nothing_of_messages_is_not_read() -> None:
    """A corrupt reminder, or an event of another version, hides no message; one that should tell and cannot does."""
    histories = MessageHistories(lambda _: True)
    for event in (M0, ScheduleChanged({"version": 9})):
        histories.apply(encode(event, 1))
    histories.apply(EventRecord("new/event", 1, "{"))
    assert histories.found == {"m0": MessageHistory()}
    with pytest.raises(CorruptLog):
        histories.apply(EventRecord("turn/end", 1, "{}"))


@given(trimmed, trimmed)
def test_a_frame_is_read_back_whatever_its_texts_say(title: str, prompt: str) -> None:
    """One task or several: each is found with its occurrence, and nothing else is."""
    tasks = [attrs.evolve(made(), id=f"task-{number}", title=title, prompt=prompt) for number in range(3)]
    dues = admit(tasks, NOW + DAY, SETTINGS).delivered
    for some in (dues[:1], dues):
        message = Message("m0", Lane.NEXT_TURN, True, frame(some), Source.SCHEDULE)
        read = delivered_by(message)
        assert [task_id for task_id, _ in read] == [due.task.id for due in some]
        assert {occurrence for _, occurrence in read} == {"2026-01-02T00:00:00.000Z"}
        assert delivered_by(attrs.evolve(message, source=Source.USER)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[SCHEDULED TASK]",
        "[SCHEDULED TASK]\ntask_id_json: {\noccurrence_at: x",
        "[SCHEDULED TASK BATCH]\ntasks_json: 1",
        "[SCHEDULED TASK BATCH]\ntasks_json: [1]",
        '[SCHEDULED TASK BATCH]\ntasks_json: [{"task_id":1}]',
        "[SCHEDULE REMINDER]\nx",
    ],
)
def test_another_text_delivers_nothing(text: str) -> None:
    """A reminder, or a message that the host's own code gave that source."""
    assert delivered_by(Message("m0", Lane.NEXT_TURN, True, text, Source.SCHEDULE)) == ()
