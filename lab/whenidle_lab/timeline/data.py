"""What the page is given to draw, as JSON values. `assets/model.js` is its reader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from whenidle_lab.reading import read, sentence, shortened, visible
from whenidle_lab.trace import What
from whenidle_protocol.json_values import json_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whenidle_lab.findings import Run
    from whenidle_lab.reading import Curve, Reading
    from whenidle_lab.trace import Happening

MAX_TEXT: Final = 1_000
"""Characters of any one text in the details of a happening."""
MAX_DETAIL: Final = 10_000
"""Characters of the details of one happening: a page of 20,000 happenings must still open."""
MAX_FINDING: Final = 20_000
"""Characters of the text of a finding, which may be a traceback."""


def page_data(run: Run, title: str) -> dict[str, Any]:
    """Return what the page of a run is given."""
    reading = read(run.trace)
    number = {agent: index for index, agent in enumerate(reading.agents)}
    finding = run.finding
    return {
        "title": visible(title),
        "scenario": visible(run.scenario),
        "finding": finding and {"kind": finding.kind.value, "name": finding.name, "text": finding.text[:MAX_FINDING]},
        "facts": {
            "rounds": run.rounds,
            "seconds": run.seconds,
            "lives": run.lives,
            "choices": len(run.choices),
            "chosen": sum(choice.picked != 0 for choice in run.choices),
            "faults": sorted(run.faults),
        },
        "agents": [shortened(agent) for agent in reading.agents],
        "kinds": [what.value for what in What],
        "happenings": _columns(reading, number),
        "records": _records(reading, number),
        "spans": [_numbered(attrs.asdict(span), number) for span in reading.spans],
        "occurrences": [_numbered(attrs.asdict(one), number) for one in reading.occurrences],
        "mailboxes": _curves(reading.mailboxes, number),
        "inboxes": _curves(reading.inboxes, number),
        "offsets": reading.offsets,
        "broken": reading.broken,
    }


def _columns(reading: Reading, number: Mapping[str, int]) -> dict[str, list[Any]]:
    order = {what: index for index, what in enumerate(What)}
    happenings = reading.happenings
    return {
        "step": [one.step for one in happenings],
        "life": [one.life for one in happenings],
        "nanos": [one.monotonic_ns for one in happenings],
        "wall": [one.wall_millis for one in happenings],
        "kind": [order[one.what] for one in happenings],
        "agent": [number.get(one.agent, -1) for one in happenings],
        "text": [sentence(one) for one in happenings],
        "detail": [_detail(one) for one in happenings],
    }


def _records(reading: Reading, number: Mapping[str, int]) -> list[tuple[int, int, str]]:
    """Return position, session and types of what became durable in each log."""
    return [
        (position, number.get(append["session"], -1), shortened(", ".join(one["type"] for one in append["records"])))
        for position, happening in enumerate(reading.happenings)
        if happening.what is What.COMMIT_DURABLE
        for append in happening.detail.get("appends") or ()
    ]


def _numbered(fields: dict[str, Any], number: Mapping[str, int]) -> dict[str, Any]:
    return {**fields, "agent": number.get(fields["agent"], -1)}


def _curves(curves: Mapping[str, Curve], number: Mapping[str, int]) -> list[tuple[int, Curve]]:
    return [(number[agent], curve) for agent, curve in curves.items() if agent in number]


def _detail(happening: Happening) -> Any:
    detail = _bounded(happening.detail)
    text = json.dumps(detail)
    return detail if len(text) <= MAX_DETAIL else {"cut": text[:MAX_DETAIL], "characters": len(text)}


def _bounded(value: Any) -> Any:
    """Return a JSON value with long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}… (+{len(value) - MAX_TEXT} characters)"
    fields = json_object(value)
    if fields is not None:
        return {key: _bounded(one) for key, one in fields.items()}
    return [_bounded(one) for one in cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else value
