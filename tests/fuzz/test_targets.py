"""Each target under the inputs it begins with, those that were found, and any others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .choices import Choices
from .found import found_inputs
from .inputs import inputs
from .targets import TARGETS

if TYPE_CHECKING:
    from pathlib import Path

    from .target import Target

SEEDS = [
    pytest.param(target, seed, id=f"{name}-{n}")
    for name, target in TARGETS.items()
    for n, seed in enumerate(target.seeds)
]
FOUND = [pytest.param(TARGETS[name], path, id=f"{name}-{path.name}") for name in TARGETS for path in found_inputs(name)]


@pytest.mark.parametrize(("target", "seed"), SEEDS)
def test_known_inputs_are_taken_or_refused_as_they_should_be(target: Target, seed: bytes) -> None:
    """What a search begins with."""
    target.check(seed)


@pytest.mark.parametrize(("target", "path"), FOUND)
def test_what_was_found_once_is_right_from_then_on(target: Target, path: Path) -> None:
    """Every input that a search has kept."""
    target.check(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_no_input_breaks_a_target(name: str, data: st.DataObject) -> None:
    """Whatever the bytes, the product answers as it says it does, in bounded time and memory."""
    TARGETS[name].check(data.draw(inputs(TARGETS[name])))


@given(st.binary(max_size=60))
def test_an_input_says_everything_that_happens(data: bytes) -> None:
    """The same bytes are the same choices, whatever is asked for, also beyond the end."""
    first, second = Choices(data), Choices(data)
    assert repr((first.value(), first.text(), first.number())) == repr((second.value(), second.text(), second.number()))
