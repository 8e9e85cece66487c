"""`whenidle task list`, `view`, `history` and `run`: host-wide tasks, looked at and run by hand."""

from typing import Annotated, Any

import trio
from cyclopts import Parameter
from rich.text import Text

from whenidle.cli.arguments import DEFAULT_STORE, Json, Store, TaskId, existing_store
from whenidle.cli.exits import Exit
from whenidle.cli.output import Output
from whenidle.cli.refusals import refusals_about
from whenidle.cli.task_lines import columns, counted, damage_line, details, table
from whenidle.cli.text import duration, visible
from whenidle.cli.values import check_within, whole_number
from whenidle.delivery_report import delivery_document, outcome_words
from whenidle_actors.message_fates import delivery_outcomes
from whenidle_actors.offline import open_manager
from whenidle_clock import SystemClock
from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.task_answers import list_answer, task_answer
from whenidle_protocol.task_requests import DEFAULT_LIMIT, MAX_LIMIT, ListTasks

DEFAULT_RECEIPTS = 20

Limit = Annotated[int, Parameter(converter=whole_number, metavar="N", help=f"How many to show, up to {MAX_LIMIT}.")]


def list_(
    *,
    active: Annotated[
        bool | None,
        Parameter(name="--active", negative="--inactive", help="Only tasks that are active, or only the others."),
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    offset: Annotated[int, Parameter(converter=whole_number, metavar="N", help="How many to pass over first.")] = 0,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> Exit:
    """List tasks: the active ones by next occurrence, then the paused and ended ones, newest first.

    One that is damaged is named on standard error, the others are listed, and the exit status is 3.
    """
    check_within("--limit", limit, 1, MAX_LIMIT)
    check_within("--offset", offset, 0, MAX_SAFE_INTEGER)
    return trio.run(_list, ListTasks(active, limit, offset), store, Output.standard(json=json))


def view(task: TaskId, /, *, store: Store = DEFAULT_STORE, json: Json = False) -> None:
    """Show one task."""
    trio.run(_view, task, store, Output.standard(json=json))


def history(
    task: TaskId,
    /,
    *,
    limit: Limit = DEFAULT_RECEIPTS,
    before: Annotated[
        int | None, Parameter(converter=whole_number, metavar="N", help="Go on where another page ended.")
    ] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Show a task's deliveries and what came of them, the newest first; they are kept for 30 days, up to 200."""
    check_within("--limit", limit, 1, MAX_LIMIT)
    if before is not None:
        check_within("--before", before, 0, MAX_SAFE_INTEGER)
    trio.run(_history, task, limit, before, store, Output.standard(json=json))


def run(task: TaskId, /, *, store: Store = DEFAULT_STORE, json: Json = False) -> None:
    """Deliver a task now, whatever its status; its next occurrence stays."""
    trio.run(_run, task, store, Output.standard(json=json))


async def _list(request: ListTasks, store: str, output: Output) -> Exit:
    clock = SystemClock()
    async with open_manager(existing_store(store), clock=clock) as manager:
        listing = await manager.tasks.listing(request)
    lines: list[str | Text] = [*table(listing.tasks, clock.now())] if listing.tasks else []
    total, shown_to = listing.total, request.offset + len(listing.entries)
    if not total:
        lines = ["there are no such tasks" if request.active is not None else "there are no tasks"]
    elif not listing.entries:
        lines = [f"there are {total} tasks, none of them behind --offset {request.offset}"]
    elif shown_to < total:
        lines = [*lines, f"{shown_to} of {total}; --offset {shown_to} shows more"]
    output.answer(list_answer(listing.entries, listing.total, request), *lines)
    output.complain(map(damage_line, listing.damaged))
    return Exit.STORE if listing.damaged else Exit.OK


async def _view(task_id: str, store: str, output: Output) -> None:
    path, clock = existing_store(store), SystemClock()
    with refusals_about(task_id):
        async with open_manager(path, clock=clock) as manager:
            task = await manager.tasks.view(task_id)
    output.answer(task_answer(task), *details(task, clock.now()))


async def _run(task_id: str, store: str, output: Output) -> None:
    path = existing_store(store)
    with refusals_about(task_id):
        async with open_manager(path) as manager:
            task = await manager.run_task(task_id)
    session = task.last_delivery.target_session_id if task.last_delivery else "?"
    output.answer(task_answer(task), f"{visible(task_id)} is in the inbox of session {visible(session)}")


async def _history(task_id: str, limit: int, before: int | None, store: str, output: Output) -> None:
    path = existing_store(store)
    with refusals_about(task_id):
        async with open_manager(path) as manager:
            task = await manager.tasks.view(task_id)
            page = await manager.tasks.receipts(task_id, before=before, limit=limit)
            outcomes = await delivery_outcomes(manager.store, page.receipts)
    receipts = [delivery_document(*each) for each in zip(page.receipts, outcomes, strict=True)]
    document = {
        "id": task.id,
        "deliveries": task.deliveries,
        "missed": task.missed,
        "skipped": task.skipped,
        "failures": task.failures,
        "receipts": receipts,
        "before": page.before,
    }
    lines = _receipt_table(receipts) if receipts else []
    more = [] if page.before is None else [f"--before {page.before} shows older ones"]
    output.answer(document, f"{visible(task.id)}  {counted(task)}", *lines, *more)


def _receipt_table(receipts: list[dict[str, Any]]) -> list[Text]:
    heads = ("occurrence", "delivered", "late", "missed", "skipped", "session", "outcome")
    rows = [
        (
            str(each["scheduledAt"]),
            str(each["deliveredAt"]),
            duration(each["lateMillis"] / 1000),
            str(each["missed"]),
            str(each["skipped"]),
            str(each["targetSessionId"]),
            outcome_words(each["outcome"]),
        )
        for each in receipts
    ]
    return columns(heads, rows)
