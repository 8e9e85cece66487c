"""When a command that failed is run again, as numbers."""

import random

import pytest

from whenidle.command_retries import Retries
from whenidle_actors.errors import InvalidArgument


def test_waits_double_up_to_the_longest() -> None:
    """Half of each wait is drawn; a run number however large overflows nothing."""
    retries = Retries(runs=3, first_wait=2, longest_wait=60)
    generator = random.Random(3)  # noqa: S311 - jitter is no secret
    for run, longest in ((1, 2), (2, 4), (5, 32), (6, 60), (10**6, 60)):
        waits = [retries.wait(run, generator) for _ in range(100)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_statuses_narrow_what_is_tried_again() -> None:
    """Without them any failure is; with them neither the time limit nor a command that did not start."""
    assert [Retries(runs=2).again(1, status) for status in (3, -9, None)] == [True, True, True]
    some = Retries(runs=2, statuses=(3,))
    assert [some.again(1, status) for status in (3, 4, None)] == [True, False, False]
    assert not some.again(2, 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": 0}, "Retries.runs is 0; write a whole number from 1 on"),
        ({"first_wait": -1}, "Retries.first_wait is -1; write seconds, 0 or more"),
        ({"longest_wait": float("inf")}, "Retries.longest_wait is inf; write seconds, 0 or more"),
    ],
)
def test_a_number_outside_its_range_is_refused(wrong: dict[str, float], message: str) -> None:
    """The message says what to write instead."""
    with pytest.raises(InvalidArgument, match=f"^{message}$"):
        Retries(**wrong)  # type: ignore[arg-type]
