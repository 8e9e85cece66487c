from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have references of scenarios begin at the root of the project."""
    monkeypatch.chdir(ROOT)
