"""A store read by a plain reader of its own: which occurrences of which tasks are in which inbox."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs

from whenidle_protocol.session_state import replay

if TYPE_CHECKING:
    from whenidle_actors.stores.base import Receipt, Store

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
THIRTY_DAYS = 30 * 24 * 3600 * 1000


def millis(instant: datetime | str) -> int:
    """Return an instant, or the text of one, in milliseconds since the epoch."""
    if isinstance(instant, str):
        instant = datetime.fromisoformat(instant)
    return (instant - EPOCH) // timedelta(milliseconds=1)


@attrs.frozen
class Delivery:
    """An occurrence of a task that is in an inbox, as the message says."""

    at: int
    task: str
    title: str
    occurrence: int
    late: float
    missed: int
    prompt: str
    session: str
    message: str


@attrs.define
class Account:
    deliveries: list[Delivery] = attrs.Factory(list)
    """In the order in which they were committed, as far as the wall clock tells; of one session, truly."""
    sessions: dict[str, list[str]] = attrs.Factory(dict)
    """The texts of all messages of each session."""
    tasks: dict[str, dict[str, Any]] = attrs.Factory(dict)
    """The stored tasks that there are."""
    receipts: dict[str, list[dict[str, Any]]] = attrs.Factory(dict)
    """Their receipts, the oldest first."""
    runs: dict[str, list[str]] = attrs.Factory(dict)
    """The ids of the messages that turns took, by session."""

    def occurrences(self, task_id: str) -> list[int]:
        return [each.occurrence for each in self.deliveries if each.task == task_id]


async def take_account(store: Store, *, repeats: bool = False) -> Account:
    """Read everything, and check what must be true of it at any time.

    Args:
        store: must be open.
        repeats: whether an instant may come up twice for one task, since it was run by hand or got a new rule.
    """
    assert list(await store.check()) == []
    account = Account()
    after = ""
    while headers := await store.sessions(after=after):
        for header in headers:
            await _read_session(store, header.id, account)
        after = headers[-1].id
    account.deliveries.sort(key=lambda each: each.at)
    for row in (await store.tasks(limit=1_000_000)).rows:
        account.tasks[row.id] = json.loads(row.data)
        account.receipts[row.id] = [json.loads(each.data) for each in reversed(await _receipts(store, row.id))]
    if not repeats:
        twice = [
            pair for pair, n in Counter((each.task, each.occurrence) for each in account.deliveries).items() if n > 1
        ]
        assert not twice, f"admitted twice: {twice}"
    _compare(account)
    return account


async def _read_session(store: Store, session_id: str, account: Account) -> None:
    whole = await store.read(session_id)
    replay(whole.records, seed_length=whole.header.seed_length)
    texts = account.sessions[session_id] = []
    runs = account.runs[session_id] = []
    for record in whole.records:
        data = json.loads(record.data)
        if record.type == "turn/start":
            runs += data["claimed"]
        if record.type == "inbox/insert":
            texts.append(data["text"])
            if data["source"] == "schedule":
                account.deliveries += _deliveries(record.at_millis, session_id, data)


def _deliveries(at: int, session_id: str, data: dict[str, Any]) -> list[Delivery]:
    lines = data["text"].split("\n")
    if lines[0] == "[SCHEDULED TASK]":
        fields = dict(line.split(": ", 1) for line in lines[2:])
        found = [
            {
                "task_id": json.loads(fields["task_id_json"]),
                "title": json.loads(fields["title_json"]),
                "prompt": json.loads(fields["prompt_json"]),
                "occurrence_at": fields["occurrence_at"],
                "late_seconds": json.loads(fields["late_seconds"]),
                "missed_occurrences": int(fields["missed_occurrences"]),
            }
        ]
    else:
        assert lines[0] == "[SCHEDULED TASK BATCH]"
        found = json.loads(lines[2].removeprefix("tasks_json: "))
        assert len(found) > 1
    return [
        Delivery(
            at,
            each["task_id"],
            each["title"],
            millis(each["occurrence_at"]),
            each["late_seconds"],
            each["missed_occurrences"],
            each["prompt"],
            session_id,
            data["id"],
        )
        for each in found
    ]


async def _receipts(store: Store, task_id: str) -> list[Receipt]:
    found: list[Receipt] = []
    before: int | None = None
    while True:
        page = await store.receipts(task_id, before=before, limit=7)
        found += page.receipts
        before = page.before
        if before is None:
            return found


def _compare(account: Account) -> None:
    """Check that task, receipts and messages tell the same story."""
    for task_id, task in account.tasks.items():
        made = [each for each in account.deliveries if each.task == task_id]
        receipts = account.receipts[task_id]
        assert task.get("deliveries", 0) == len(made)
        assert task.get("missed", 0) == sum(each.missed for each in made)
        if len(made) <= 200 and made and made[-1].at - made[0].at < THIRTY_DAYS:  # else some were dropped
            told = [(each.occurrence, each.session, each.missed, round(each.late * 1000)) for each in made]
            kept = [
                (millis(each["scheduledAt"]), each["targetSessionId"], each["missed"], each["lateMillis"])
                for each in receipts
            ]
            assert sorted(kept) == sorted(told)
        if made:
            last = task["lastDelivery"]
            assert last["targetSessionId"] in {each.session for each in made}
            assert receipts[-1]["scheduledAt"] == last["scheduledAt"]
