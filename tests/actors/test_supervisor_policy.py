from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenidle_actors.errors import InvalidArgument
from whenidle_actors.supervision import (
    DEFAULT_SUPERVISION,
    ActorExit,
    Restart,
    Supervision,
    Verdict,
    backoff_delay,
    judge,
)

FAULT = ValueError()


def seeded(seed: int) -> Random:
    """Return a generator of jitter."""
    return Random(seed)  # noqa: S311 - jitter is no secret


@pytest.mark.parametrize(
    ("policy", "after_fault", "after_exit"),
    [
        (Restart.PERMANENT, Verdict.RESTART, Verdict.RESTART),
        (Restart.TRANSIENT, Verdict.RESTART, Verdict.STOP),
        (Restart.TEMPORARY, Verdict.FAULT, Verdict.STOP),
    ],
)
def test_each_policy_answers_a_fault_and_a_normal_exit(
    policy: Restart, after_fault: Verdict, after_exit: Verdict
) -> None:
    """The table of restart policies."""
    supervision = Supervision(policy)
    assert judge(supervision, [], 0.0, FAULT) is after_fault
    assert judge(supervision, [], 0.0, ActorExit()) is after_exit


@pytest.mark.parametrize("error", [FAULT, ActorExit()])
def test_one_fault_more_than_the_intensity_within_the_window_escalates(error: Exception) -> None:
    """Restarts at the very edge of the window no longer count."""
    supervision = Supervision(intensity=2, window=10.0)
    assert judge(supervision, [95.0], 100.0, error) is Verdict.RESTART
    assert judge(supervision, [90.0, 95.0], 100.0, error) is Verdict.RESTART
    assert judge(supervision, [90.1, 95.0], 100.0, error) is Verdict.FAULT


def test_an_intensity_of_zero_never_restarts() -> None:
    """The first fault marks the actor faulted."""
    assert judge(Supervision(intensity=0), [], 0.0, FAULT) is Verdict.FAULT


def test_backoff_doubles_up_to_its_maximum() -> None:
    """Without jitter the waits are exact, and no attempt is too high."""
    supervision = Supervision(backoff_initial=0.5, backoff_max=3.0, jitter=0.0)
    waits = [backoff_delay(supervision, attempt, seeded(1)) for attempt in (1, 2, 3, 4, 5, 5000)]
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]


def test_no_jitter_draws_nothing() -> None:
    """The generator is left as it was, so runs with and without supervision can be compared."""
    generator = seeded(7)
    backoff_delay(Supervision(jitter=0.0), 3, generator)
    assert generator.getstate() == seeded(7).getstate()


@given(
    jitter=st.floats(0, 1),
    attempt=st.integers(1, 100),
    seed=st.integers(),
)
def test_jitter_only_shortens_a_wait_and_by_its_share(jitter: float, attempt: int, seed: int) -> None:
    """A wait of d becomes one in [(1 - jitter) * d, d], the same for the same seed."""
    full = backoff_delay(Supervision(jitter=0.0), attempt, seeded(seed))
    supervision = Supervision(jitter=jitter)
    wait = backoff_delay(supervision, attempt, seeded(seed))
    assert full * (1 - jitter) <= wait <= full
    assert wait == backoff_delay(supervision, attempt, seeded(seed))


def test_jitter_does_vary_the_waits() -> None:
    """Two draws differ, or actors that fail together would come back together."""
    generator = seeded(3)
    assert len({backoff_delay(DEFAULT_SUPERVISION, 1, generator) for _ in range(10)}) == 10


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("intensity", -1, "write 0 or more"),
        ("window", 0.0, "write more than 0"),
        ("window", float("nan"), "write more than 0"),
        ("backoff_initial", 0.0, "write more than 0"),
        ("backoff_max", -1.0, "write more than 0"),
        ("jitter", 1.1, "write a fraction from 0 to 1"),
        ("jitter", -0.1, "write a fraction from 0 to 1"),
        ("shutdown_timeout", -1.0, "write 0 or more"),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(field: str, value: float, hint: str) -> None:
    """The message names the field and says what to write."""
    with pytest.raises(InvalidArgument, match=rf"Supervision\.{field} is {value}; {hint}"):
        Supervision(**{field: value})  # type: ignore[arg-type]  # one field at a time
