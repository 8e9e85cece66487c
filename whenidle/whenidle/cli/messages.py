"""`whenidle send`: a message for a session, from any process."""

from typing import Annotated

import trio
from cyclopts import Parameter

from whenidle.cli.arguments import DEFAULT_STORE, Json, Session, Store, text_argument
from whenidle.cli.output import Output
from whenidle_actors.composition import MAX_MESSAGE_BYTES
from whenidle_actors.offline import open_manager
from whenidle_actors.session import check_message, check_session_id


def send(
    session: Session,
    text: Annotated[str, Parameter(help="The message; - reads it from standard input.")],
    /,
    *,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Queue a message for a session, which is created if there is none of that id.

    The message is durable when the command ends; a running host notices it within a second.
    """
    trio.run(_send, session, text, store, Output.standard(json=json))


async def _send(session: str, text: str, store: str, output: Output) -> None:
    check_session_id(session)
    message = await text_argument(text, "TEXT")
    check_message(message, MAX_MESSAGE_BYTES)  # before the store is opened, which may make one
    async with open_manager(store) as manager:
        identity = await manager.send(session, message)
    output.answer({"session": session, "messageId": identity}, f"queued {identity} for {session}")
