"""A session log read by a plain reader of its own, which knows the rules and none of the product's code."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_protocol.session_state import replay

if TYPE_CHECKING:
    from whenidle_actors.stores.base import SessionSlice, Store

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def millis(instant: datetime | str) -> int:
    """Return milliseconds since the epoch."""
    if isinstance(instant, str):
        instant = datetime.fromisoformat(instant)
    return (instant - EPOCH) // timedelta(milliseconds=1)


@attrs.frozen
class Entry:
    seq: int
    type: str
    at: int
    data: Any


@attrs.frozen
class Delivery:
    """An occurrence that entered the inbox."""

    at: int
    """When, in milliseconds since the epoch."""
    id: str
    occurrence: int
    prompt: str
    message: str


@attrs.define
class Ledger:
    """What a log says of its reminders."""

    created: dict[str, dict[str, Any]] = attrs.Factory(dict[str, dict[str, Any]])
    active: dict[str, int] = attrs.Factory(dict[str, int])
    """The next target of each active reminder."""
    deleted: set[str] = attrs.Factory(set[str])
    deliveries: list[Delivery] = attrs.Factory(list[Delivery])
    attempts: dict[str, list[int]] = attrs.Factory(dict[str, list[int]])
    """The attempt numbers of the turns that took each message."""
    outcomes: list[str] = attrs.Factory(list[str])

    @property
    def delivered(self) -> list[tuple[str, int]]:
        return [(delivery.id, delivery.occurrence) for delivery in self.deliveries]


async def read_log(store: Store, session_id: str = "root") -> list[Entry]:
    """Return a whole log."""
    return entries_of(await store.read(session_id))


def entries_of(whole: SessionSlice) -> list[Entry]:
    """Return the entries of a whole log."""
    return [
        Entry(seq, record.type, record.at_millis, json.loads(record.data)) for seq, record in enumerate(whole.records)
    ]


async def audit(store: Store, session_id: str = "root") -> Ledger:
    """Return the ledger of a log, having checked that each occurrence was admitted once, whole and not early."""
    whole = await store.read(session_id)
    assert replay(whole.records, seed_length=whole.header.seed_length).reminders.corrupt is None
    return balance(entries_of(whole))


def balance(entries: list[Entry]) -> Ledger:
    """Return the ledger of a log, checked as `audit` does, but for the product's own fold."""
    ledger = Ledger()
    announced: list[Delivery] = []
    for entry in entries:
        if entry.type == "schedule/change":
            _schedule(ledger, entry, announced)
            continue
        assert not announced, f"event {entry.seq}: a delivered message without its dispatch"
        if entry.type == "inbox/insert" and entry.data["source"] == "schedule":
            announced = _occurrences(entry)
            ledger.deliveries += announced
            announced = list(announced)
        elif entry.type == "turn/start":
            for message in entry.data["claimed"]:
                ledger.attempts.setdefault(message, []).append(entry.data["attempt"])
        elif entry.type == "turn/end":
            ledger.outcomes.append(entry.data["outcome"])
    assert not announced, "a delivered message without its dispatch"
    pairs = ledger.delivered
    assert len(set(pairs)) == len(pairs), f"admitted twice: {pairs}"
    for attempts in ledger.attempts.values():
        assert attempts == list(range(1, len(attempts) + 1))
    return ledger


def _occurrences(entry: Entry) -> list[Delivery]:
    lines = entry.data["text"].split("\n")
    if lines[0] == "[SCHEDULE REMINDER]":
        identity, when, prompt = (line.split(": ", 1)[1] for line in lines[2:])
        found = [(json.loads(identity), when, json.loads(prompt))]
    else:
        assert lines[0] == "[SCHEDULE REMINDER BATCH]"
        found = [
            (item["schedule_id"], item["occurrence_at"], item["reminder_prompt"])
            for item in json.loads(lines[2].split(": ", 1)[1])
        ]
    return [Delivery(entry.at, name, millis(when), prompt, entry.data["id"]) for name, when, prompt in found]


def _schedule(ledger: Ledger, entry: Entry, announced: list[Delivery]) -> None:
    change = entry.data
    if change["operation"] == "create":
        record = change["schedule"]
        assert not announced
        assert record["id"] not in ledger.created, f"the id {record['id']} is used twice"
        ledger.created[record["id"]] = record
        ledger.active[record["id"]] = millis(record["scheduledAt"])
        return
    target = ledger.active.pop(change["id"])
    if change["operation"] == "delete":
        assert not announced
        ledger.deleted.add(change["id"])
        return
    delivery = announced.pop(0)
    record = ledger.created[change["id"]]
    assert (delivery.id, delivery.prompt) == (record["id"], record["prompt"])
    if record["kind"] == "every":
        accepted, period = millis(change["acceptedAt"]), record["everySeconds"] * 1000
        assert accepted >= target, "admitted early"
        latest = range(target, accepted + 1, period)[-1]
        assert delivery.occurrence == latest
        ledger.active[record["id"]] = latest + period
    else:
        assert delivery.occurrence == target
        assert delivery.at >= target, "admitted early"
