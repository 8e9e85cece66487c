"""The demo has to be able to fail: it promises that it checked what it shows."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from whenidle.cli import demo_story
from whenidle.cli.demo_host import DemoHost
from whenidle.cli.demo_story import Entry, Narrator
from whenidle.cli.exits import CommandRefused
from whenidle.cli.output import Output
from whenidle_clock import SystemClock, from_millis
from whenidle_protocol import EventRecord

from .command_line import Call

MESSAGE = {
    "id": "m0",
    "lane": "next-turn",
    "wake": True,
    "text": 'schedule_id_json: "schedule-1"',
    "source": "schedule",
}
DISPATCH = {"version": 1, "operation": "dispatch", "id": "schedule-1"}
START = {"turn": 1, "claimed": ["m0"], "attempt": 1}
LOG = [("inbox/insert", MESSAGE), ("schedule/change", DISPATCH), ("turn/start", START)]


class Forged:
    """A log that says what a test wants."""

    def __init__(self, events: list[tuple[str, Any]]) -> None:
        self._events = events

    async def entries(self) -> list[Entry]:
        """Return the log."""
        return [
            Entry(seq, from_millis(0), EventRecord(kind, 0, json.dumps(data)), data)
            for seq, (kind, data) in enumerate(self._events)
        ]


async def prove(events: list[tuple[str, Any]]) -> str:
    """Have the demo judge a log and return what it says."""
    file = io.StringIO()
    narrator = Narrator(Output(json=False, console=Console(file=file, width=200)), SystemClock())
    await demo_story._prove(Forged(events), narrator, ["schedule-1"])  # type: ignore[arg-type]  # of a session it is asked for its log alone
    return file.getvalue()


async def test_a_log_with_one_of_each_is_proof() -> None:
    """One dispatch, one message and one turn are what the demo asks for."""
    assert "one dispatch, one message, one turn that took it" in await prove(LOG)


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        ([*LOG, LOG[1]], "(2, 1, 1)"),
        ([*LOG, ("inbox/insert", {**MESSAGE, "id": "m9"})], "(1, 2, 1)"),
        ([*LOG, ("turn/start", {**START, "turn": 2})], "(1, 1, 2)"),
        (LOG[:2], "(1, 1, 0)"),
        ([], "(0, 0, 0)"),
    ],
)
async def test_anything_twice_or_missing_fails_the_demo(events: list[tuple[str, Any]], counts: str) -> None:
    """The demo says what it found instead."""
    with pytest.raises(CommandRefused) as refused:
        await prove(events)
    assert refused.value.code == "demo_failed"
    assert counts in refused.value.message


async def test_a_host_that_does_not_start_fails_the_demo(tmp_path: Path) -> None:
    """What the host said instead is passed on."""
    async with DemoHost(tmp_path) as host:
        with pytest.raises(CommandRefused, match=r"did not start: .*store_unavailable"):
            await host.start()


def test_a_demo_that_does_not_end_is_ended(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who waits for the demo is told, and gets a status."""
    monkeypatch.setattr("whenidle.cli.demo.TIME_LIMIT", 0.01)
    result = call("demo")
    assert result.status == 1
    assert result.err == "whenidle: the demo did not come to its end within 0.01 s\n"
