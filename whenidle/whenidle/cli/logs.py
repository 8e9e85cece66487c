"""`whenidle log`: what happened in a session, and what happens next."""

from typing import Annotated

import trio
from cyclopts import Parameter

from whenidle.cli.arguments import DEFAULT_STORE, Json, Session, Store, existing_store
from whenidle.cli.event_lines import event_document, event_line
from whenidle.cli.output import Output
from whenidle.cli.watching import appended
from whenidle_actors.session import check_session_id
from whenidle_actors.stores.base import Role, SessionSlice
from whenidle_actors.stores.sqlite import SqliteStore


def log(
    session: Session,
    /,
    *,
    follow: Annotated[bool, Parameter(negative=(), help="Go on with what is appended, until Ctrl-C.")] = False,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Show the log of a session; with --json one event a line."""
    trio.run(_log, session, follow, store, Output.standard(json=json))


async def _log(session: str, follow: bool, path: str, output: Output) -> None:  # noqa: FBT001 - the option
    check_session_id(session)
    store = SqliteStore(existing_store(path))
    async with store.opened(Role.MANAGER):
        seen = await store.read(session)
        _show(seen, output)
        while follow:
            seen = await appended(store, session, seen.length)
            _show(seen, output)


def _show(part: SessionSlice, output: Output) -> None:
    for seq, record in enumerate(part.records, part.start):
        if output.json:
            output.document(event_document(seq, record))
        else:
            output.say(event_line(seq, record))
    output.flush()
