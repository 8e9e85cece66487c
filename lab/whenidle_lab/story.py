"""A run told as a story: plain text for a terminal, of a failing run that was shrunk above all."""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Final

from whenidle_lab.choices import Topic
from whenidle_lab.reading import Ending, SpanKind, read, sentence, shortened, span_text, visible, wall_text
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from whenidle_lab.choices import Choice
    from whenidle_lab.findings import Finding, Run
    from whenidle_lab.reading import Occurrence, Reading
    from whenidle_lab.trace import Happening

WIDTH: Final = 100
"""Columns; no line is longer."""
MOST: Final = 240
"""Lines of what happened. Of more, the beginning and the end are told."""
_HEAD: Final = 80
MOST_CHOICES: Final = 24
"""Choices told one by one."""
MOST_FINDING: Final = 60
"""Lines of a finding's text: a traceback ends with what matters."""

_QUIET = frozenset({What.COMMIT_BEGAN, What.COMMIT_DURABLE, What.DEPTH, What.BROKEN})
_NOT_TOLD = frozenset({"agent-started", "maintenance-started", "maintenance-ended"})
_INDENT = "    "


def tell(run: Run) -> str:
    """Return the story of a run: what went wrong on purpose, what happened when, and what broke at the end.

    Each line fits 100 columns. Texts of users, agents and models are shown with their control characters
    written out.
    """
    reading = read(run.trace)
    lines = [f"The story of a run of {visible(run.scenario)}", ""]
    lines += _wrapped(_summary(run, reading))
    lines += _wrapped(_faults(run))
    lines += ["", "What happened", *_bounded(list(_happenings(reading)))]
    lines += ["", *_choices(run.choices)]
    lines += ["", *_end(run.finding, reading)]
    return "\n".join(lines) + "\n"


def _summary(run: Run, reading: Reading) -> str:
    who = ", ".join(shortened(agent, 20) for agent in reading.agents[:8]) or "nobody"
    more = f" and {len(reading.agents) - 8} more" if len(reading.agents) > 8 else ""  # noqa: PLR2004 - as in the slice
    return (
        f"{_many(run.lives, 'process', 'processes')}, {_many(run.rounds, 'round')} of the event loop, "
        f"{span_text(run.seconds)} of virtual time, with {who}{more}."
    )


def _faults(run: Run) -> str:
    if not run.faults:
        return "Nothing went wrong on purpose."
    return f"What went wrong on purpose: {', '.join(sorted(run.faults))}."


def _many(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


# What happened -----------------------------------------------------------------------------------


def _happenings(reading: Reading) -> Iterator[str]:
    """Yield the lines of what happened, under a heading for each instant."""
    told = _Sentences(reading)
    last: tuple[int, int] | None = None
    for position, happening in enumerate(reading.happenings):
        sentences = told.of(position, happening)
        if not sentences:
            continue
        if last != (happening.life, happening.monotonic_ns):
            last = happening.life, happening.monotonic_ns
            yield ""
            yield f"  {span_text(happening.monotonic_ns / 1e9)}   (wall {wall_text(happening.wall_millis)})"
        for agent, words in sentences:
            who = shortened(agent, 16)
            yield from _wrapped(f"{who:<8} {words}" if who else words, _INDENT, _INDENT + " " * 9)


class _Sentences:
    """Knows what is worth telling of each happening."""

    def __init__(self, reading: Reading) -> None:
        self._ends = {(span.kind, span.begin): span for span in reading.spans}
        self._told_with_beginning: set[int] = set()
        self._happenings = reading.happenings
        self._admitted: dict[int, list[Occurrence]] = {}
        for one in reading.occurrences:
            if one.admitted is not None:
                self._admitted.setdefault(one.admitted, []).append(one)

    def of(self, position: int, happening: Happening) -> list[tuple[str, str]]:
        """Return agent and words of each sentence about a happening; often there is none."""
        if happening.what is What.COMMIT_DURABLE:
            return [(one.agent, _admission(one)) for one in self._admitted.get(position, ())]
        if position in self._told_with_beginning or _is_quiet(happening):
            return []
        return [(happening.agent, sentence(happening) + self._answer(position, happening))]

    def _answer(self, position: int, happening: Happening) -> str:
        """Return how a call or a send ended, if that was at the same instant and nothing lies between."""
        kind = {What.CALL_BEGAN: SpanKind.CALL, What.SEND_BEGAN: SpanKind.SEND}.get(happening.what)
        span = None if kind is None else self._ends.get((kind, position))
        if span is None or span.ending is Ending.CUT:
            return ""
        end = self._happenings[span.end]
        if end.monotonic_ns != happening.monotonic_ns:
            return ""
        self._told_with_beginning.add(span.end)
        words = sentence(end)
        return f"  → {words[0].lower()}{words[1:]}"


def _is_quiet(happening: Happening) -> bool:
    detail = happening.detail
    if happening.what is What.COMMIT_ENDED:
        return detail.get("fate", "done") == "done" and not detail.get("error")
    return happening.what in _QUIET or (happening.what is What.HOST and detail.get("event") in _NOT_TOLD)


def _admission(one: Occurrence) -> str:
    late = one.late_millis or 0
    when = "on time" if not late else f"{span_text(abs(late) / 1000)} {'late' if late > 0 else 'TOO EARLY'}"
    missed = f", standing for {one.missed} missed" if one.missed else ""
    return f"{one.source} “{one.prompt}” enters the inbox: due {wall_text(one.due_millis)}, {when}{missed}"


def _bounded(lines: list[str]) -> list[str]:
    if len(lines) <= MOST:
        return lines
    left_out = len(lines) - MOST
    note = f"  … {left_out:,} lines left out; the timeline has all of it …"
    return [*lines[:_HEAD], "", note, "", *lines[left_out + _HEAD :]]


# Choices -----------------------------------------------------------------------------------------


def _choices(choices: Iterable[Choice]) -> Iterator[str]:
    made = [(number, choice) for number, choice in enumerate(choices) if choice.picked]
    yield f"Choices that are not quiet: {len(made)}"
    for number, choice in made[:MOST_CHOICES]:
        yield f"{_INDENT}{number:>6}  {_TOPICS[choice.topic]}: option {choice.picked} of 0 to {choice.count - 1}"
    rest = Counter(_TOPICS[choice.topic] for _, choice in made[MOST_CHOICES:])
    if rest:
        yield from _wrapped(
            "and " + ", ".join(f"{count} more of {topic}" for topic, count in sorted(rest.items())), _INDENT, _INDENT
        )


_TOPICS: Final = {
    Topic.TASK: "the next task",
    Topic.ACTOR: "the next actor",
    Topic.COMMIT: "what commits meet",
    Topic.READ: "what reads meet",
    Topic.CLOCK: "the clock",
    Topic.CRASH: "the crash",
    Topic.TURN: "what turns do wrong",
    Topic.AGENT: "what befalls agents",
    Topic.SCENARIO: "the scenario's own",
}


# The end -----------------------------------------------------------------------------------------


def _end(finding: Finding | None, reading: Reading) -> Iterator[str]:
    if finding is None:
        yield "Nothing broke."
        return
    where = ""
    if reading.broken is not None:
        one = reading.happenings[reading.broken]
        where = f", in round {one.step:,}, {span_text(one.monotonic_ns / 1e9)} after the beginning"
    yield from _wrapped(f"It broke{where}: {finding.kind} {visible(finding.name)}")
    lines = finding.text.splitlines()
    if len(lines) > MOST_FINDING:
        yield f"{_INDENT}… {len(lines) - MOST_FINDING} lines …"
    for line in lines[-MOST_FINDING:]:
        margin = _INDENT + " " * min(40, len(line) - len(line.lstrip(" ")))
        yield from _wrapped(visible(line.strip()), margin, margin)


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    has_wide = not text.isascii() and any(unicodedata.east_asian_width(one) in {"W", "F"} for one in text)
    return textwrap.wrap(
        text,
        WIDTH // 2 if has_wide else WIDTH,  # a wide character takes two columns
        initial_indent=first,
        subsequent_indent=rest,
        drop_whitespace=True,
        replace_whitespace=False,
        break_on_hyphens=False,
    ) or [""]
