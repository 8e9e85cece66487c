from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.look.traces import MIDNIGHT, every_kind
from whenidle_lab.reading import sentence, shortened, span_text, visible, wall_text
from whenidle_lab.trace import Happening, What


def _said(what: What, **detail: object) -> str:
    return sentence(Happening(0, 0, 0, MIDNIGHT, what, "ada", detail))


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_visible_text_is_one_printable_line(text: str) -> None:
    """Whatever a text holds, its visible form can be printed on one line."""
    assert visible(text).isprintable()


def test_visible_text_names_what_cannot_be_printed() -> None:
    """Control characters, overrides of direction and lone surrogates are written out; the rest stays as it is."""
    assert visible("a\n\x1b\u202e\ud800\U000e0001é") == "a\\n\\x1b\\u202e\\ud800\\U000e0001é"


def test_shortened_text_says_how_much_is_missing() -> None:
    """A long text is cut after so many characters, and says how many are left out."""
    assert (shortened("abc", 3), shortened("abcdef", 3)) == ("abc", "abc… (+3)")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.005, "5 ms"),
        (1.5, "1.5 s"),
        (-12, "-12 s"),
        (59.7, "1 min"),
        (607, "10 min 7 s"),
        (7_200, "2 h"),
        (187_200, "2 d 4 h"),
    ],
)
def test_lengths_of_time_are_told_in_two_units(seconds: float, text: str) -> None:
    """A length of time is told in its two largest units."""
    assert span_text(seconds) == text


def test_instants_are_told_with_milliseconds_only_if_needed() -> None:
    """A wall instant shows its milliseconds if there are any, and one that no calendar has is told as a number."""
    assert wall_text(MIDNIGHT) == "2026-01-01 00:00:00"
    assert wall_text(MIDNIGHT + 250) == "2026-01-01 00:00:00.250"
    assert wall_text(10**18) == "1e+18 ms since 1970"


def test_each_kind_of_happening_has_words() -> None:
    """Every kind of happening can be told, and each as one printable line."""
    happenings = every_kind(words="x\n\x1b[31m").trace.happenings
    assert {one.what for one in happenings} == set(What)
    assert all(sentence(one).isprintable() for one in happenings)


def test_what_ends_badly_says_so() -> None:
    """Failures, refusals and fates are part of the sentence."""
    assert _said(What.CALL_ENDED, error="AgentDisposed") == "The call fails: AgentDisposed"
    assert _said(What.CALL_ENDED, answer={"code": "no", "message": "not now"}) == "The call is refused: no: not now"
    assert _said(What.CALL_ENDED, answer=[1]) == "The call is answered: [1]"
    assert _said(What.CALL_ENDED, answer={"id": "s", "scheduledAt": "9"}) == "The call is answered: s, due 9"
    assert _said(What.CALL_ENDED, answer={"tasks": 1}) == 'The call is answered: {"tasks": 1}'
    assert _said(What.SEND_ENDED, error="StoreFull") == "The message fails: StoreFull"
    assert _said(What.WAIT_ENDED, error=None) == "The wait is over: it is idle"
    assert _said(What.CHANGED, how="remove", message="m1", error="Gone") == "Message m1 is not taken back: Gone"
    assert _said(What.COMMIT_ENDED, commit=1, fate="lost", error=None) == "Commit 1: its caller is told, it was lost"
    assert _said(What.TURN_ENDED, turn=3, how="raised", error="ValueError") == "Turn 3 raises: ValueError"
    assert _said(What.LIFE_ENDED, how="gone") == "The process ends"


def test_the_clock_says_what_it_did() -> None:
    """Steps say their direction, and what nobody was told of says that."""
    assert _said(What.CLOCK, how="step", by=-1.0, announced=True) == "The wall clock is set back by 1 s"
    assert _said(What.CLOCK, how="step", by=60.0, announced=False).endswith("forward by 1 min, and nobody is told")
    assert _said(What.CLOCK, how="suspend", by=60.0, announced=True) == "The machine is suspended for 1 min"
    assert _said(What.CLOCK, how="drift", by=-50, announced=False) == "The wall clock drifts by -50 ppm from now on"
    assert _said(What.CLOCK, how="drift", by=0, announced=False) == "The wall clock no longer drifts"


def test_a_commit_says_what_is_in_it() -> None:
    """A durable commit tells of new sessions, of records by type, and of tasks."""
    appends = [{"session": "ada", "records": [{"type": "turn/start"}, {"type": "turn/end"}]}]
    tasks = [{"id": "t1", "task": "{}"}, {"id": "t2", "task": None}]
    assert _said(What.COMMIT_DURABLE, commit=4, created=["ada"], appends=appends, tasks=tasks) == (
        "Commit 4 is durable: session ada is new; ada gets turn/start, turn/end; task t1 is written; task t2 is deleted"
    )
    assert _said(What.COMMIT_DURABLE, commit=5).endswith("nothing in it")


def test_an_empty_note_is_told_by_its_kind() -> None:
    """Where there are no words the kind has to do; a note stays as its scenario wrote it."""
    assert _said(What.NOTE, text="") == "note"
    assert _said(What.NOTE, text="lower case", more=1) == 'lower case {"more": 1}'
