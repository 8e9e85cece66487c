"""The demo's story: what is done, what is said about it, and what is checked."""

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Self

import attrs
from rich.text import Text

from whenidle.cli.demo_host import DemoHost
from whenidle.cli.event_lines import event_line
from whenidle.cli.exits import CommandRefused
from whenidle.cli.output import Output
from whenidle.cli.text import duration
from whenidle.cli.watching import appended
from whenidle_actors.offline import Manager, open_manager
from whenidle_actors.stores.base import SessionSlice
from whenidle_clock import Clock, from_millis, parse_instant
from whenidle_protocol.events import EventRecord

SESSION = "ada"
EVENT_WIDTH = 150

START_SECONDS = 1.5
"""How long a host may take to start for the story to be told at its usual pace."""
MOST_PACE = 5
"""How many times slower it is told at most."""


@attrs.frozen
class Pace:
    """How long things take in the story, in whole seconds: on a slow machine longer, or they would not meet."""

    slower: int = 1

    @classmethod
    def of(cls, start_seconds: float) -> Self:
        """Return the pace for a machine on which a host takes so many seconds to start."""
        return cls(min(max(math.ceil(start_seconds / START_SECONDS), 1), MOST_PACE))

    @property
    def thinking(self) -> int:
        """How long the agent thinks."""
        return 4 * self.slower

    @property
    def while_busy(self) -> int:
        """How long until the reminder that is made meanwhile comes due; half of the thinking is left for making it."""
        return 2 * self.slower

    @property
    def while_down(self) -> int:
        """How long until the reminder comes due before which the host is killed."""
        return 3 * self.slower


class Narrator:
    """Says what happens, with the seconds since the beginning in front."""

    def __init__(self, output: Output, clock: Clock) -> None:
        self._output = output
        self.clock = clock
        self._began = clock.monotonic()

    def title(self, text: str) -> None:
        """Begin a chapter."""
        self._tell("title", text, Text(f"\n{text}", "bold"))

    def say(self, text: str) -> None:
        """Tell one thing."""
        self._tell("step", text, Text.assemble((f"{self._elapsed:6.1f} s  ", "dim"), text))

    def proved(self, text: str) -> None:
        """Tell one thing that has been checked in the log."""
        self._tell("proof", text, Text.assemble((f"{self._elapsed:6.1f} s  ", "dim"), ("✓ ", "bold green"), text))

    def event(self, seq: int, record: EventRecord) -> None:
        """Show an event of the log, as much of it as fits a line."""
        line = event_line(seq, record)
        line.truncate(EVENT_WIDTH, overflow="ellipsis")
        self._tell("event", line.plain, line)

    @property
    def _elapsed(self) -> float:
        return self.clock.monotonic() - self._began

    def _tell(self, kind: str, text: str, line: Text) -> None:
        self._output.answer({"elapsed": round(self._elapsed, 3), "kind": kind, "text": text}, line)
        self._output.flush()


@attrs.frozen
class Entry:
    """An event of the log, read."""

    seq: int
    at: datetime
    record: EventRecord
    data: Any


class Watched:
    """The log of the demo's session, as another process sees it."""

    def __init__(self, manager: Manager, clock: Clock) -> None:
        self.manager = manager
        self.clock = clock

    async def entries(self) -> list[Entry]:
        """Return the whole log."""
        return _read(await self.manager.read(SESSION))

    async def first(self, wanted: Callable[[Entry], bool]) -> Entry:
        """Wait until the log has an event that is `wanted`, and return the first one."""
        part = await self.manager.read(SESSION)
        while True:
            for entry in _read(part):
                if wanted(entry):
                    return entry
            part = await appended(self.manager.store, SESSION, part.length)

    async def remind(self, seconds: int, prompt: str) -> dict[str, Any]:
        """Make a reminder and return its record."""
        record = await self.manager.call_tool(SESSION, "schedule_create", {"prompt": prompt, "after_seconds": seconds})
        return dict(record)


def _read(part: SessionSlice) -> list[Entry]:
    return [
        Entry(seq, from_millis(record.at_millis), record, json.loads(record.data))
        for seq, record in enumerate(part.records, part.start)
    ]


async def tell_story(host: DemoHost, narrator: Narrator) -> None:
    """Play all of it.

    Raises:
        CommandRefused: something was not as promised.
    """
    narrator.title("A host, an agent and a reminder")
    narrator.say(f"a host starts in a process of its own, on the file {host.store.name}")
    began = narrator.clock.monotonic()
    pid = await host.start()
    pace = Pace.of(narrator.clock.monotonic() - began)
    narrator.say(f"process {pid} runs it; we are another process, beside it on the same file")
    async with open_manager(host.store, clock=narrator.clock) as manager:
        watched = Watched(manager, narrator.clock)
        busy = await _due_while_busy(watched, narrator, pace)
        down = await _due_while_down(watched, narrator, host, pace)
        await _prove(watched, narrator, (busy, down))
    narrator.say("the host stops in order")
    _check(await host.stop() == 0, "the host did not stop in order")
    narrator.say("that is all")


async def _due_while_busy(watched: Watched, narrator: Narrator, pace: Pace) -> str:
    narrator.title("1. Due while the agent is busy: the reminder waits until it is idle")
    await watched.manager.send(SESSION, f"Plan my day, please, and think for {pace.thinking} seconds.")
    start = await watched.first(_is("turn/start"))
    narrator.say(f"{SESSION} is given a message and thinks about it for {pace.thinking} s")
    made = await watched.remind(pace.while_busy, "Stretch your legs.")
    due = parse_instant(made["scheduledAt"])
    narrator.say(f"{made['id']} is made meanwhile, due in {pace.while_busy} s, in the middle of the turn")
    end = await watched.first(_is("turn/end"))
    _check(start.at < due < end.at, "the reminder did not come due during the turn")
    narrator.say(f"the turn is over; {made['id']} was due {_gap(due, end.at)} ago")
    delivery = await watched.first(_delivers(made["id"]))
    _check(delivery.at >= end.at, "the reminder was delivered during the turn")
    narrator.proved(f"{made['id']} was delivered {_gap(end.at, delivery.at)} after the turn, and not during it")
    await watched.first(_is("turn/end", turn=2))
    return str(made["id"])


async def _due_while_down(watched: Watched, narrator: Narrator, host: DemoHost, pace: Pace) -> str:
    narrator.title("2. Due while the host is down: the reminder is delivered after the restart")
    made = await watched.remind(pace.while_down, "Drink a glass of water.")
    due = parse_instant(made["scheduledAt"])
    narrator.say(f"{made['id']} is made, due in {pace.while_down} s")
    await host.kill()
    narrator.say("the host process is killed (SIGKILL)")
    await watched.clock.sleep_until(due)
    _check(not any(map(_delivers(made["id"]), await watched.entries())), "somebody delivered for a dead host")
    narrator.say(f"{made['id']} is due now, and nobody is there")
    await host.start()
    narrator.say("a new host process has started on the same file")
    delivery = await watched.first(_delivers(made["id"]))
    _check(delivery.at >= due, "the reminder was delivered before it was due")
    narrator.proved(f"{made['id']} was delivered {_gap(due, delivery.at)} late, by the new host")
    await watched.first(_is("turn/end", turn=3))
    return str(made["id"])


async def _prove(watched: Watched, narrator: Narrator, reminders: Sequence[str]) -> None:
    narrator.title("3. The log proves it: each was admitted once")
    entries = await watched.entries()
    for entry in entries:
        if entry.record.type != "turn/note":
            narrator.event(entry.seq, entry.record)
    for reminder in reminders:
        dispatches = [entry for entry in entries if _delivers(reminder)(entry)]
        messages = [entry for entry in entries if _carries(reminder)(entry)]
        turns = [entry for entry in entries if messages and _takes(messages[0].data["id"])(entry)]
        counts = (len(dispatches), len(messages), len(turns))
        _check(counts == (1, 1, 1), f"{reminder}: {counts} dispatches, messages and turns instead of one each")
        narrator.proved(f"{reminder}: one dispatch, one message, one turn that took it")


def _is(kind: str, turn: int = 1) -> Callable[[Entry], bool]:
    return lambda entry: entry.record.type == kind and entry.data["turn"] == turn


def _delivers(reminder: str) -> Callable[[Entry], bool]:
    return lambda entry: (
        entry.record.type == "schedule/change"
        and entry.data["operation"] == "dispatch"
        and entry.data["id"] == reminder
    )


def _carries(reminder: str) -> Callable[[Entry], bool]:
    return lambda entry: (
        entry.record.type == "inbox/insert"
        and entry.data["source"] == "schedule"
        and f'schedule_id_json: "{reminder}"' in entry.data["text"]
    )


def _takes(message: str) -> Callable[[Entry], bool]:
    return lambda entry: entry.record.type == "turn/start" and message in entry.data["claimed"]


def _gap(earlier: datetime, later: datetime) -> str:
    return duration((later - earlier).total_seconds())


def _check(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not holds:
        raise CommandRefused("demo_failed", otherwise)
