"""The tables of `docs/operations.md` name what there is."""

import re

from whenidle.telemetry import metrics, spans

from .documents import ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for floor in ("actors/whenidle_actors", "whenidle/whenidle")
    for path in sorted((ROOT / floor).rglob("*.py"))
)


def test_every_record_is_in_the_table() -> None:
    """Each event name that is logged stands there, and none that is not."""
    logged = set(re.findall(r'report\(\s*logger,\s*logging\.\w+,\s*"([a-z-]+)"', SOURCES))
    assert len(logged) > 15
    rows = re.findall(r"^\| (`[^|]+`) \| (?:ERROR|WARNING|INFO|DEBUG) \|", OPERATIONS, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)} == logged


def test_every_metric_and_span_is_in_the_tables() -> None:
    """By the names under which a backend shows them."""
    source = (ROOT / "whenidle" / "whenidle" / "telemetry" / "metrics.py").read_text(encoding="utf-8")
    names = set(re.findall(r'\(\s*"(whenidle\.[a-z._]+)"', source))
    assert len(names) == len(metrics._GAUGES) + 10
    assert {name for name in names if f"`{name}`" not in OPERATIONS} == set()
    assert {name for name in spans._NAMES.values() if f"`{name.replace('{tool}', 'NAME')}`" not in OPERATIONS} == set()
