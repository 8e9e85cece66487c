"""The mutants themselves: that they still apply, differ, and are found."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.catalog import MUTANTS
from tests.mutants.patches import DoesNotApply, Mutant


def source_of(mutant: Mutant) -> str:
    """Return the source of the module that a mutant patches."""
    spec = importlib.util.find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_applies(mutant: Mutant) -> None:
    """Each patch still fits its module, and what it makes of it compiles."""
    compile(mutant.apply(source_of(mutant)), mutant.module, "exec")


def test_are_many_and_named_apart() -> None:
    """There are at least thirty, no two of one name, and no two the same."""
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.module, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_a_patch_that_does_not_fit_says_so() -> None:
    """A patch whose text is gone, or there twice, is refused by its name."""
    mutant = Mutant("gone", "m", "old", "new", "nothing")
    with pytest.raises(DoesNotApply, match="gone"):
        mutant.apply("something else")
    with pytest.raises(DoesNotApply, match="2 times"):
        mutant.apply("old old")


def test_one_is_found_from_the_command_line() -> None:
    """`python -m tests.mutants NAME --json` breaks the runtime in a process of its own and finds that."""
    command = [sys.executable, "-m", "tests.mutants", "delivers-early", "--json", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["mutant"], found["strategy"], found["found"]) == ("delivers-early", "random", True)
