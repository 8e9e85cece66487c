import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle_lab import files, script
from whenidle_lab.choices import Choice, Topic
from whenidle_lab.files import RecordingError, load, recording_of, save
from whenidle_lab.findings import Finding, FindingKind
from whenidle_lab.recording import MAX_MARKS, MAX_TEXT, Recording, marks_of
from whenidle_lab.run import run
from whenidle_lab.strategies import RandomWalk
from whenidle_lab.subjects import subject
from whenidle_lab.trace import Happening, Trace, What

from .toys import Calm, Overtaking

CHOICES = st.builds(
    lambda topic, count, picked: Choice(topic, count, picked % count),
    st.sampled_from(Topic),
    st.integers(2, 20),
    st.integers(0, 19),
)


def recorded() -> Recording:
    """Return the recording of a run."""
    ran = run(Calm(), RandomWalk().strategy(3), digest=True)
    return Recording.of(ran, Finding(FindingKind.INVARIANT, "x", "y\ud800"), subject(Calm), "random", 3)


@given(st.lists(CHOICES))
def test_choices_are_read_as_they_were_written(choices: list[Choice]) -> None:
    """As words, a dozen a line, equal ones once."""
    assert list(script.read(script.written(choices))) == choices
    assert (
        list(script.without_tail(choices))
        + [Choice(choice.topic, choice.count, 0) for choice in choices[len(script.without_tail(choices)) :]]
        == choices
    )


def test_choices_are_written_for_people_too() -> None:
    """The topic, how many options, and which was taken if not the first."""
    choices = [Choice(Topic.TASK, 3, 0)] * 5 + [Choice(Topic.CRASH, 2, 1)]
    assert script.written(choices) == ["task3*5 crash2:1"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("task", "'task' is no choice"),
        ("task3 ", "'' is no choice"),
        ("tusk3", "'tusk3' is no choice"),
        ("task3:3", "'task3:3' picks one that there is not"),
        ("task2*999999999", "there are more than 1000000 choices"),
    ],
)
def test_words_that_are_no_choice_are_refused(word: str, message: str) -> None:
    """Whoever wrote them has damaged the file."""
    with pytest.raises(ValueError, match=r".") as raised:
        script.read([word])
    assert str(raised.value) == message


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    """From a file in a folder that is made for it, with nothing else left there."""
    recording, file = recorded(), tmp_path / "new" / "one.json"
    save(recording, file)
    assert load(file) == recording
    assert list(file.parent.iterdir()) == [file]
    assert recording.choices is not None
    assert recording.choices[-1].picked
    lost = Recording.lost(Finding(FindingKind.HUNG, "run", ""), subject(Calm), "random", 3)
    assert recording_of(lost.to_text(), "it") == lost


def test_long_texts_are_cut_and_long_traces_marked_in_part() -> None:
    """So that a file is bounded, whatever a run does."""
    ran = run(Calm(), digest=True)
    kept = Recording.of(ran, Finding(FindingKind.ERROR, "x", "z" * 50_000), subject(Calm), "random", 3)
    assert kept.finding.text == "z" * MAX_TEXT + "\n… and 30000 characters more"
    trace = Trace()
    for number in range(MAX_MARKS + 10):
        trace.add(Happening(number, 0, 0, 0, What.NOTE, "", {}))
    assert len(marks_of(trace)) == 4 * MAX_MARKS


def _changed(**changes: Any) -> str:
    document = json.loads(recorded().to_text())
    return json.dumps({key: value for key, value in (document | changes).items() if value != "(gone)"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is no recording of the lab: Expecting value"),
        ("[" * 100_000, "it is no recording of the lab: maximum recursion depth"),
        ("[]", "it is no recording of the lab: it lacks the format 'whenidle lab recording'"),
        (_changed(format="x"), "it is no recording of the lab"),
        (_changed(format_version=2), "it has format 2, and this whenidle, 0.1.0, reads formats up to 1"),
        (_changed(format_version="1"), "it is damaged: 'format_version' is not a whole number"),
        (_changed(seed="(gone)"), "it is damaged: there is no 'seed'"),
        (_changed(seed=True), "it is damaged: 'seed' is not a whole number"),
        (_changed(seed=-1), "it is damaged: 'seed' is not a whole number from 0 to 9007199254740991"),
        (_changed(more=1), "it is damaged: there is a field 'more', which means nothing"),
        (_changed(choices=[1]), "it is damaged: 'choices' are not lines of text"),
        (_changed(choices=["tusk2"]), "it is damaged: 'tusk2' is no choice"),
        (_changed(choices="task2"), "it is damaged: 'choices' is not a list"),
        (_changed(finding={"kind": "bad", "name": "", "text": ""}), "it is damaged: there is no kind of finding 'bad'"),
        (_changed(versions={"trio": 1}), "it is damaged: 'trio' is not a text"),
        (_changed(versions="(gone)"), "it is damaged: there is no 'versions'"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(text: str, message: str) -> None:
    """With what is wrong with it; one of a later version is told from one that is damaged."""
    with pytest.raises(RecordingError) as raised:
        recording_of(text, "it")
    assert str(raised.value).startswith(message)


def test_a_later_format_names_the_version_that_made_it() -> None:
    """That is the one to use."""
    text = _changed(format_version=7, versions={"whenidle": "9.1"}, what_is_new=1)
    with pytest.raises(RecordingError, match=r"it was made by 9\.1$"):
        recording_of(text, "it")


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is read as anything."""
    file = tmp_path / "one.json"
    file.write_bytes(b"ab\xff")
    with pytest.raises(RecordingError, match="byte 3 is not UTF-8"):
        load(file)
    monkeypatch.setattr(files, "MAX_BYTES", 2)
    with pytest.raises(RecordingError, match="it has more than 2 bytes"):
        load(file)


def test_what_is_not_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves no half of a recording."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        save(recorded(), tmp_path / "one.json")
    assert list(tmp_path.iterdir()) == []


def test_an_overtaking_is_recorded_by_one_choice() -> None:
    """The smallest recording of a race says who overtook whom."""
    quiet = run(Overtaking())
    assert quiet.finding is None
