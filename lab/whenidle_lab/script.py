"""Choices as text: one word for each, like `task3:1` for the second of three tasks, `task3` for the first of them.

Equal words that follow each other are written once, `task2*17`. What is behind the last choice that is not 0 is only
counted: a strategy that is quiet makes the same of it.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from whenidle_lab.choices import Choice, Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_CHOICES = 1_000_000
"""In one recording: some hundred times what a long run makes."""

WORDS = 12
"""On one line, for people."""

_WORD = re.compile(r"(?P<topic>[a-z]+)(?P<count>[0-9]{1,9})(:(?P<picked>[0-9]{1,9}))?(\*(?P<times>[0-9]{1,9}))?")


def without_tail(choices: Sequence[Choice]) -> Sequence[Choice]:
    """Return choices up to the last one that is not 0."""
    end = len(choices)
    while end and not choices[end - 1].picked:
        end -= 1
    return choices[:end]


def written(choices: Iterable[Choice]) -> list[str]:
    """Return choices as lines of words."""
    words = [_word(choice, len(list(equal))) for choice, equal in groupby(choices)]
    return [" ".join(words[at : at + WORDS]) for at in range(0, len(words), WORDS)]


def read(lines: Iterable[str]) -> tuple[Choice, ...]:
    """Return the choices that `written` wrote.

    Raises:
        ValueError: a word is none of it, or there are more than `MAX_CHOICES`.
    """
    found: list[Choice] = []
    for word in (word for line in lines for word in line.split(" ")):
        choice, times = _choice(word)
        if len(found) + times > MAX_CHOICES:
            raise ValueError(f"there are more than {MAX_CHOICES} choices")
        found.extend([choice] * times)
    return tuple(found)


def _word(choice: Choice, times: int) -> str:
    picked = f":{choice.picked}" if choice.picked else ""
    return f"{choice.topic}{choice.count}{picked}" + (f"*{times}" if times > 1 else "")


def _choice(word: str) -> tuple[Choice, int]:
    match = _WORD.fullmatch(word)
    if match is None or match["topic"] not in set(Topic):
        raise ValueError(f"{word[:40]!r} is no choice")
    count, picked, times = int(match["count"]), int(match["picked"] or 0), int(match["times"] or 1)
    if picked >= count:
        raise ValueError(f"{word!r} picks one that there is not")
    return Choice(Topic(match["topic"]), count, picked), times
