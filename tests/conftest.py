"""Settings of the whole test suite."""

import os

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=40, deadline=None)
# CI judges each change by the same examples; the profile people use explores new ones every time.
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption(
        "--kills",
        type=int,
        default=int(os.environ.get("WHENIDLE_KILLS", "50")),
        help="how often a real host is killed with SIGKILL (default: $WHENIDLE_KILLS, else 50)",
    )
