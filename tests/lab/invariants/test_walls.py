from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from whenidle_lab.invariants.walls import Moment, Walls
from whenidle_lab.trace import Happening, What

if TYPE_CHECKING:
    from collections.abc import Sequence

MS = 1_000_000


class Course:
    """A wall clock that is stepped, and what is known of it."""

    def __init__(self) -> None:
        self.walls = Walls()
        self.ns, self.wall = 0, 1_000_000
        self.shown = {self.wall}
        self._tell(What.LIFE_BEGAN, down=0.0)

    def run(self, millis: int) -> None:
        self.shown.update(range(self.wall, self.wall + millis + 1))
        self.wall, self.ns = self.wall + millis, self.ns + millis * MS

    def step(self, millis: int, how: str = "step") -> None:
        self.wall += millis
        self.shown.add(self.wall)
        self._tell(What.CLOCK, how=how, by=millis / 1000, announced=True)

    def now(self) -> Moment:
        return self.walls.moment(self._tell(What.NOTE))

    def _tell(self, what: What, **detail: object) -> Happening:
        happening = Happening(0, 0, self.ns, self.wall, what, "", detail)
        if what is not What.NOTE:
            self.walls.take(happening)
        return happening


MOVES = st.lists(st.tuples(st.integers(0, 20), st.integers(-30, 30)), max_size=6)


@given(MOVES)
def test_the_ranges_hold_exactly_what_the_wall_has_shown(moves: Sequence[tuple[int, int]]) -> None:
    """Between two moments the wall has shown the readings of the ranges, and no others."""
    course = Course()
    since = course.now()
    for run, step in moves:
        course.run(run)
        course.step(step)
    until = course.now()
    ranges = list(course.walls.readings(since, until))
    assert {reading for low, high in ranges for reading in range(low, high + 1)} == course.shown
    assert course.walls.highest(since, until) == max(course.shown)
    for reading in range(min(course.shown) - 2, max(course.shown) + 3):
        assert course.walls.showed(since, until, reading, reading) == (reading in course.shown)


@given(MOVES, st.integers(-40, 40))
def test_a_target_is_passed_when_the_wall_shows_it_for_good(moves: Sequence[tuple[int, int]], away: int) -> None:
    """A target counts as passed since the first moment from which on the wall has not shown less."""
    course = Course()
    seen = [(course.ns, course.wall)]
    for run, step in moves:
        for _ in range(run):
            course.run(1)
            seen.append((course.ns, course.wall))
        course.step(step)
        seen.append((course.ns, course.wall))
    target = course.wall + away
    passed: int | None = None
    for ns, wall in seen:
        passed = None if wall < target else ns if passed is None else passed
    assert course.walls.passed(target, course.now()) == passed


def test_a_wall_that_drifts_is_not_stepped() -> None:
    """That the clock begins to drift does not change what it shows."""
    course = Course()
    since = course.now()
    course.step(0, "drift")
    assert list(course.walls.readings(since, course.now())) == [(1_000_000, 1_000_000)]


def test_what_a_wall_showed_while_no_process_lived_is_not_known() -> None:
    """The time between two processes is a step."""
    course = Course()
    course.run(5)
    since = course.now()
    course._tell(What.LIFE_ENDED, how="crashed")
    course.wall += 1_000
    course._tell(What.LIFE_BEGAN, down=1.0)
    assert list(course.walls.readings(since, course.now())) == [(1_000_005, 1_000_005), (1_001_005, 1_001_005)]


def test_a_wall_that_was_never_stepped_has_shown_it_all_along() -> None:
    """Before the first step there is nothing to look back to."""
    assert Walls().passed(5, Moment(7 * MS, 12, 0)) == 0
