"""The SDK's server with the task tools, their instructions, and tasks as resources."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, cast

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from whenidle.mcp.changes import ChangeFeed
from whenidle.mcp.post import Post
from whenidle.mcp.resources import TaskResources
from whenidle.mcp.tool_calls import Answer, ToolCalls
from whenidle.mcp.transport import ReadyResult, Transport
from whenidle_protocol.task_prompt import prompt_section
from whenidle_protocol.task_schemas import CREATE, EDIT, LIST, VIEW, task_tools
from whenidle_protocol.task_settings import Caller, TaskSettings
from whenidle_protocol.tool_exports import mcp_tools

_TOOLS = (CREATE, LIST, VIEW, EDIT)
_HINTS = {
    CREATE: types.ToolAnnotations(title="Schedule a task", destructive_hint=False, open_world_hint=False),
    LIST: types.ToolAnnotations(title="List scheduled tasks", read_only_hint=True, open_world_hint=False),
    VIEW: types.ToolAnnotations(title="Show a scheduled task", read_only_hint=True, open_world_hint=False),
    EDIT: types.ToolAnnotations(
        title="Change or delete a scheduled task", destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
}

_WHERE = (
    "Each occurrence of a task starts an agent of its own, not this conversation, with the task's prompt; "
    'target "this_session" is the session "{session}" of that agent, shared by all who use this server with it.'
)
_ELSEWHERE = (
    "At the moment another process{pid} delivers the tasks of this store; this server manages them and takes over when "
    "that process ends."
)


def instructions(post: Post, session: str) -> str:
    """Return what a model is told of the server: when it may schedule, and who will do what is scheduled."""
    host_pid = post.stand.host_pid
    said = [prompt_section(_TOOLS), _WHERE.format(session=session)]
    if host_pid is not None:
        said.append(_ELSEWHERE.format(pid=f" ({host_pid})" if host_pid else ""))
    return " ".join(said)


class TaskServer:
    """The task tools and tasks as resources, for one client.

    Args:
        post: where the tasks are.
        feed: tells the client of changes.
        caller: the session that stands for the client.
        settings: the host's choices.
    """

    def __init__(self, post: Post, feed: ChangeFeed, caller: Caller, settings: TaskSettings) -> None:
        self._feed = feed
        self._calls = ToolCalls(post, caller, settings)
        self._resources = TaskResources(post)
        self._tools = _tools(settings)
        self._server: Server[dict[str, Any]] = Server(
            "whenidle",
            version=version("whenidle"),
            title="Scheduled tasks",
            instructions=instructions(post, caller.session_id),
            on_list_tools=self._list_tools,
            on_call_tool=self._refuse_call,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=feed.listen,
        )
        self._server.add_notification_handler("notifications/initialized", types.NotificationParams, self._greet)
        self._server.middleware.append(self._answer_tools)

    async def serve(self, transport: Transport) -> None:
        """Serve the client until it has said all, or the transport is given up."""
        options = self._server.create_initialization_options(NotificationOptions(resources_changed=True))
        await self._server.run(transport.reading, transport.writing, options)

    async def _answer_tools(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer well-formed tool calls here: their results are ready as text, which the SDK would take apart."""
        call = _task_call(ctx)
        if call is None:
            return await call_next(ctx)
        answer = await self._calls.answer(*call)
        return _result(answer, self._server if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else None)

    async def _refuse_call(self, _: object, __: types.CallToolRequestParams) -> types.CallToolResult:
        raise MCPError(types.INVALID_PARAMS, f"the tools are {', '.join(_TOOLS)}")

    async def _list_tools(self, _: object, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "the list of tools has one page")
        return types.ListToolsResult(tools=self._tools)

    async def _list_resources(
        self, _: object, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await self._resources.page(None if params is None else params.cursor)

    async def _list_templates(
        self, _: object, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return self._resources.templates()

    async def _read_resource(self, _: object, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await self._resources.read(str(params.uri))

    async def _subscribe(self, _: object, params: types.SubscribeRequestParams) -> types.EmptyResult:
        await self._feed.subscribe(str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(self, _: object, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._feed.unsubscribe(str(params.uri))
        return types.EmptyResult()

    async def _greet(self, ctx: ServerRequestContext[Any, Any], _: types.NotificationParams) -> None:
        self._feed.greet(ctx.session)


def _task_call(context: ServerRequestContext[Any, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return tool and arguments of a call of a task tool that is as the protocol has it; None if it is not."""
    if context.method != "tools/call" or context.params is None:
        return None
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS and context.session.client_params is None:
        return None  # there was no handshake: the SDK refuses it
    name, arguments = context.params.get("name"), context.params.get("arguments")
    if name not in _TOOLS or not isinstance(arguments, dict | None):
        return None
    return name, cast("dict[str, Any]", arguments or {})


def _result(answer: Answer, modern: Server[Any] | None) -> dict[str, Any]:
    """Return the result of a call, as text that goes on the wire as it is; see `mcp_result` for its parts."""
    block = f'{{"type":"text","text":"{answer.text.quoted}"}}'
    refused = "true" if answer.refused else "false"
    envelope = ""
    if modern is not None:
        stamp = json.dumps({types.SERVER_INFO_META_KEY: modern.server_info_stamp})
        envelope = f',"resultType":"complete","_meta":{stamp}'
    text = f'{{"content":[{block}],"structuredContent":{answer.text.plain},"isError":{refused}{envelope}}}'
    return {"structuredContent": ReadyResult(text), "isError": answer.refused}


def _tools(settings: TaskSettings) -> list[types.Tool]:
    return [
        types.Tool.model_validate({**tool, "annotations": _HINTS[tool["name"]]})
        for tool in mcp_tools(task_tools(settings))
    ]
