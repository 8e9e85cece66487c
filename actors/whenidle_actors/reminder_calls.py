"""The reminder tools at work on one session, whoever owns it: an agent's mailbox or a management command.

The order of a call is that of SPEC 5.6: the arguments were read before; here come the durability
preflight, the fold, the append with its barrier, and the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whenidle_actors.errors import StoreError
from whenidle_clock import from_millis
from whenidle_protocol import reminder_changes
from whenidle_protocol.tool_schemas import CREATE, LIST
from whenidle_protocol.tools import (
    MAX_PROMPT_BYTES,
    CreateRequest,
    DeleteRequest,
    ListRequest,
    list_answer,
    persistence_uncertain,
    read_create,
    read_delete,
    read_list,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whenidle_actors.session import Session
    from whenidle_actors.tracing import Tracing
    from whenidle_protocol.session_state import SessionState
    from whenidle_protocol.tools import Request
    from whenidle_protocol.turn_changes import Decided


def read(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    fixed_rate: bool = True,
    max_prompt_bytes: int = MAX_PROMPT_BYTES,
) -> Request:
    """Return a tool call as a request.

    Raises:
        ToolError: the arguments are not what the tool takes.
    """
    given = dict(arguments) if hasattr(arguments, "keys") else arguments
    if tool == CREATE:
        return read_create(given, fixed_rate=fixed_rate, max_prompt_bytes=max_prompt_bytes)
    return read_list(given) if tool == LIST else read_delete(given)


async def preflight(session: Session, request: Request) -> SessionState:
    """Return the state that is certainly durable.

    Raises:
        ToolError: `persistence_uncertain`.
    """
    try:
        return await session.confirm()
    except StoreError as error:
        raise _uncertain(request) from error


async def serve(session: Session, request: Request, tracing: Tracing | None = None) -> Any:
    """Answer `request`; what it changes is durable when this returns, with its trace if there is one.

    Raises:
        ToolError: the answer is a refusal.
    """
    try:
        if isinstance(request, ListRequest):
            state = await session.confirm()
            state.reminders.check()
            return list_answer(state.reminders, from_millis(session.now_millis))
        if isinstance(request, DeleteRequest):
            return await session.decide(lambda state: reminder_changes.delete(state, request))
        now = from_millis(session.now_millis)

        def create(state: SessionState) -> Decided[dict[str, Any]]:
            events, answer = reminder_changes.create(state, request, now)
            trace = None if tracing is None else tracing.created(session.header.id, answer["id"])
            return (events if trace is None else (*events, trace)), answer

        return await session.decide(create)
    except StoreError as error:
        raise _uncertain(request) from error


def _uncertain(request: Request) -> Exception:
    if isinstance(request, CreateRequest):
        return persistence_uncertain("create")
    if isinstance(request, DeleteRequest):
        return persistence_uncertain("delete", request.id)
    return persistence_uncertain("list")
