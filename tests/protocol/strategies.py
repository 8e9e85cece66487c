"""Generated values of the protocol, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from whenidle_clock.instants import MAX_MILLIS, MIN_MILLIS, from_millis
from whenidle_protocol.events import (
    Ignored,
    Lane,
    Message,
    MessageReplaced,
    MessagesRemoved,
    Outcome,
    ScheduleChanged,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnNoted,
    TurnStarted,
)
from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.schedule_change import (
    MAX_EVERY_SECONDS,
    AfterReminder,
    AtReminder,
    Create,
    Delete,
    Dispatch,
    EveryReminder,
)
from whenidle_protocol.white_space import trim

# Any text a JSON log may hold: pairs as one character, halves of a pair only where they stand alone.
texts = st.text(st.characters()).map(
    lambda text: text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
names = texts.filter(bool)
trimmed = texts.map(trim).filter(bool)
turns = st.integers(1, MAX_SAFE_INTEGER)
ids = st.lists(names, min_size=1, max_size=4, unique=True).map(tuple)
instants = st.integers(MIN_MILLIS, MAX_MILLIS).map(from_millis)

events = st.one_of(
    st.builds(Message, names, st.sampled_from(Lane), st.booleans(), texts, st.sampled_from(Source)),
    st.builds(MessagesRemoved, ids),
    st.builds(MessageReplaced, names, texts),
    st.builds(TurnStarted, turns, ids, turns),
    st.builds(StepClaimed, turns, ids),
    st.builds(TurnAborted, turns, texts, ids | st.just(())),
    st.builds(TurnEnded, turns, st.sampled_from(Outcome), st.none() | texts),
    st.builds(TurnEnded, turns, st.just(Outcome.INTERRUPTED), st.none(), st.booleans()),
    st.builds(TurnNoted, turns, json_values),
    st.builds(ScheduleChanged, json_values),
    st.builds(Ignored, st.just("other/kind"), json_values),
)

reminders = st.one_of(
    st.builds(AfterReminder, trimmed, trimmed, st.integers(1, MAX_SAFE_INTEGER), instants),
    st.builds(AtReminder, trimmed, trimmed, instants),
    st.builds(EveryReminder, trimmed, trimmed, st.integers(300, MAX_EVERY_SECONDS), instants),
)
changes = st.one_of(
    st.builds(Create, reminders),
    st.builds(Delete, trimmed),
    st.builds(Dispatch, trimmed, st.none() | instants),
)
