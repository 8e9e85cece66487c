"""`whenidle remind`, `reminders` and `forget`: the three reminder tools for people and scripts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import trio
from cyclopts import Parameter

from whenidle.cli.arguments import DEFAULT_STORE, Json, Session, Store, existing_store, text_argument
from whenidle.cli.event_lines import TEXT_LIMIT, rule
from whenidle.cli.exits import CommandRefused, UsageError
from whenidle.cli.output import Output
from whenidle.cli.refusals import answered, refusals
from whenidle.cli.text import shortened, until, visible
from whenidle.cli.values import local_time, number
from whenidle_actors.offline import open_manager
from whenidle_actors.session import check_session_id
from whenidle_clock import Clock, SystemClock, parse_instant
from whenidle_protocol.tools import make_reminder, read_create


def remind(  # noqa: PLR0913 - one parameter an option
    session: Session,
    prompt: Annotated[str, Parameter(help="What to be reminded of; - reads it from standard input.")],
    /,
    *,
    after: Annotated[str | None, Parameter(metavar="SECONDS", help="Due once, this many seconds from now.")] = None,
    at: Annotated[
        str | None,
        Parameter(
            metavar="TIME",
            help="Due once, at an instant (2030-01-31T09:00:00Z) or, with --zone, at a local time"
            " (2030-01-31T09:00:00).",
        ),
    ] = None,
    zone: Annotated[
        str | None, Parameter(metavar="ZONE", help="The time zone of a local --at: UTC or a name such as Europe/Paris.")
    ] = None,
    every: Annotated[
        str | None,
        Parameter(metavar="SECONDS", help="Due again and again, at this interval of seconds (at least 300)."),
    ] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Make a reminder for a session, which is created if there is none of that id."""
    arguments = _selector(after, at, zone, every)
    trio.run(_remind, session, prompt, arguments, store, Output.standard(json=json))


def reminders(session: Session, /, *, store: Store = DEFAULT_STORE, json: Json = False) -> None:
    """List the active reminders of a session, in the order in which they were made."""
    trio.run(_reminders, session, store, Output.standard(json=json))


def forget(
    session: Session,
    reminder: Annotated[str, Parameter(name="ID", help="Id of the reminder, for example schedule-1.")],
    /,
    *,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Delete a reminder; a message that it has put into an inbox already stays there."""
    trio.run(_forget, session, reminder, store, Output.standard(json=json))


async def _remind(session: str, prompt: str, selector: Mapping[str, Any], store: str, output: Output) -> None:
    check_session_id(session)
    arguments = {"prompt": await text_argument(prompt, "PROMPT"), **selector}
    clock = SystemClock()
    _foresee(arguments, clock)
    async with open_manager(store, clock=clock) as manager:
        answer = await manager.call_tool(session, "schedule_create", arguments, create=True)
    record = answered(answer)
    due = record["scheduledAt"]
    output.answer(answer, f"{visible(record['id'])} is due {due} ({until(parse_instant(due), clock.now())})")


async def _reminders(session: str, store: str, output: Output) -> None:
    answer, now = await _call(session, store, "schedule_list", {})
    records = answered(answer)
    lines = [_line(record, now) for record in records] or [f"{session} has no active reminders"]
    output.answer(answer, *lines)


async def _forget(session: str, reminder: str, store: str, output: Output) -> None:
    arguments = {"id": await text_argument(reminder, "ID")}
    answer, _ = await _call(session, store, "schedule_delete", arguments)
    if not answered(answer)["deleted"]:
        raise CommandRefused(
            answer["code"],
            f"{session} has no active reminder {shortened(reminder, 100)}; `whenidle reminders` lists them",
        )
    output.answer(answer, f"{visible(reminder)} is forgotten")


def _foresee(arguments: Mapping[str, Any], clock: Clock) -> None:
    """Refuse what the tool is going to refuse, before it would leave an empty store behind."""
    with refusals():
        make_reminder(read_create(arguments), "schedule-1", clock.now())


async def _call(session: str, store: str, tool: str, arguments: Mapping[str, Any]) -> tuple[Any, datetime]:
    check_session_id(session)
    clock = SystemClock()
    async with open_manager(existing_store(store), clock=clock) as manager:
        return await manager.call_tool(session, tool, arguments), clock.now()


def _selector(after: str | None, at: str | None, zone: str | None, every: str | None) -> dict[str, Any]:
    """Return the one selector of a reminder as the tool takes it.

    Raises:
        UsageError: none is given, or several, or a zone without a local time, or what is no number.
    """
    given = [name for name, value in (("--after", after), ("--at", at), ("--every", every)) if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise UsageError(f"give exactly one of --after, --at and --every, not {found}", "invalid_selector")
    if zone is not None and at is None:
        raise UsageError(f"--zone belongs to a local --at; {given[0]} counts seconds", "invalid_selector")
    if after is not None:
        return {"after_seconds": number("--after", after)}
    if every is not None:
        return {"every_seconds": number("--every", every)}
    return {"at": at if zone is None else local_time(at or "", zone)}


def _line(record: Mapping[str, Any], now: datetime) -> str:
    due = record["scheduledAt"]
    columns = (
        f"{visible(record['id']):<12}",
        f"{rule(record):<14}",
        due,
        f"{until(parse_instant(due), now):<20}",
    )
    return "  ".join((*columns, shortened(record["prompt"], TEXT_LIMIT)))
