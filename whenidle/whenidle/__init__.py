"""Durable reminders and tasks for LLM agents: supervised agents on trio, exactly-once admission, a virtual clock.

    async with open_host(store="agents.db", turn=turn) as host:
        agent = await host.create_agent("ada")
        await agent.call_tool("schedule_create", {"prompt": "Stretch.", "after_seconds": 60})

`turn` is the agent: an async function of one `Turn`, called with the messages that came for it;
`CommandAgent` runs a command instead.

Reminders are a session's own; tasks are the host's. A host is given the suite that its agents get the tools of:

    tasks = Tasks()
    async with open_host(store="agents.db", turn=turn, suites=[tasks]) as host:
        rule = WeeklyRule("08:00", "Europe/Paris", weekdays=[1])
        await tasks.desk.create(CreateTask("Digest", "Sum up the week.", rule, TargetKind.NEW), Caller(""))

The runtime's exceptions are in `errors`. Importing this package costs nothing: each name is imported when it is first
asked for.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenidle.command_agent import CommandAgent
    from whenidle.command_report import CommandFailed, CommandTimedOut
    from whenidle.command_retries import Retries
    from whenidle.command_template import CommandError, CommandNotFound, command_line, shell_script
    from whenidle.portal import Portal, PortalClosed, WrongThread, open_portal
    from whenidle_actors import errors
    from whenidle_actors.agent import Agent, AgentStatistics, InboxView
    from whenidle_actors.composition import open_host
    from whenidle_actors.event_stream import EventStream, EventStreamStatistics
    from whenidle_actors.host import Host, HostLoad, HostStatistics
    from whenidle_actors.message_fates import delivery_outcomes
    from whenidle_actors.observation import EventGap, EventKind, HostEvent
    from whenidle_actors.offline import Manager, open_manager
    from whenidle_actors.reminders import Reminders
    from whenidle_actors.stores.base import SessionHeader, Store
    from whenidle_actors.stores.memory import MemoryStore
    from whenidle_actors.stores.sqlite import SqliteStore
    from whenidle_actors.stores.task_rows import Receipt, ReceiptPage, Retention
    from whenidle_actors.supervision import Supervision
    from whenidle_actors.task_desk import TaskDesk
    from whenidle_actors.tasks import Tasks
    from whenidle_actors.turn import Redelivery, Turn, TurnFunction
    from whenidle_clock import Clock, Gap, Overlap, SystemClock, VirtualClock
    from whenidle_protocol import Message, ToolError, ToolSchema
    from whenidle_protocol.errors import ReminderCode, TaskCode
    from whenidle_protocol.message_history import Fate, MessageHistory
    from whenidle_protocol.preview import preview
    from whenidle_protocol.recurrence.failures import RuleError
    from whenidle_protocol.recurrence.occurrences import Change, Occurrence
    from whenidle_protocol.rules.cron import CronRule
    from whenidle_protocol.rules.daily import DailyRule
    from whenidle_protocol.rules.interval import EveryRule
    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.rules.once import AfterRule, AtRule
    from whenidle_protocol.rules.rrule import RRuleRule
    from whenidle_protocol.rules.weekly import WeeklyRule
    from whenidle_protocol.task_listing import DamagedTask, TaskListing
    from whenidle_protocol.task_prompt import PROMPT_KEY, prompt_section
    from whenidle_protocol.task_record import TargetKind, Task, TaskStatus
    from whenidle_protocol.task_requests import CreateTask, DeleteTask, ListTasks, UpdateTask
    from whenidle_protocol.task_settings import Caller, TaskSettings
    from whenidle_protocol.tool_exports import (
        anthropic_tools,
        mcp_result,
        mcp_tools,
        openai_chat_tools,
        openai_responses_tools,
    )

__all__ = [
    "PROMPT_KEY",
    "AfterRule",
    "Agent",
    "AgentStatistics",
    "AtRule",
    "Caller",
    "Change",
    "Clock",
    "CommandAgent",
    "CommandError",
    "CommandFailed",
    "CommandNotFound",
    "CommandTimedOut",
    "CreateTask",
    "CronRule",
    "DailyRule",
    "DamagedTask",
    "DeleteTask",
    "EventGap",
    "EventKind",
    "EventStream",
    "EventStreamStatistics",
    "EveryRule",
    "Fate",
    "Gap",
    "Host",
    "HostEvent",
    "HostLoad",
    "HostStatistics",
    "InboxView",
    "ListTasks",
    "Manager",
    "MemoryStore",
    "Message",
    "MessageHistory",
    "Occurrence",
    "Overlap",
    "Portal",
    "PortalClosed",
    "RRuleRule",
    "Receipt",
    "ReceiptPage",
    "Redelivery",
    "ReminderCode",
    "Reminders",
    "Retention",
    "Retries",
    "Rule",
    "RuleError",
    "SessionHeader",
    "SqliteStore",
    "Store",
    "Supervision",
    "SystemClock",
    "TargetKind",
    "Task",
    "TaskCode",
    "TaskDesk",
    "TaskListing",
    "TaskSettings",
    "TaskStatus",
    "Tasks",
    "ToolError",
    "ToolSchema",
    "Turn",
    "TurnFunction",
    "UpdateTask",
    "VirtualClock",
    "WeeklyRule",
    "WrongThread",
    "anthropic_tools",
    "command_line",
    "delivery_outcomes",
    "errors",
    "mcp_result",
    "mcp_tools",
    "open_host",
    "open_manager",
    "open_portal",
    "openai_chat_tools",
    "openai_responses_tools",
    "preview",
    "prompt_section",
    "shell_script",
]

_ROOMS = {
    "whenidle.command_agent": "CommandAgent",
    "whenidle.command_report": "CommandFailed CommandTimedOut",
    "whenidle.command_retries": "Retries",
    "whenidle.command_template": "CommandError CommandNotFound command_line shell_script",
    "whenidle.portal": "Portal PortalClosed WrongThread open_portal",
    "whenidle_actors": "errors",
    "whenidle_actors.agent": "Agent AgentStatistics InboxView",
    "whenidle_actors.composition": "open_host",
    "whenidle_actors.event_stream": "EventStream EventStreamStatistics",
    "whenidle_actors.host": "Host HostLoad HostStatistics",
    "whenidle_actors.message_fates": "delivery_outcomes",
    "whenidle_actors.observation": "EventGap EventKind HostEvent",
    "whenidle_actors.offline": "Manager open_manager",
    "whenidle_actors.reminders": "Reminders",
    "whenidle_actors.stores.base": "SessionHeader Store",
    "whenidle_actors.stores.memory": "MemoryStore",
    "whenidle_actors.stores.sqlite": "SqliteStore",
    "whenidle_actors.stores.task_rows": "Receipt ReceiptPage Retention",
    "whenidle_actors.supervision": "Supervision",
    "whenidle_actors.task_desk": "TaskDesk",
    "whenidle_actors.tasks": "Tasks",
    "whenidle_actors.turn": "Redelivery Turn TurnFunction",
    "whenidle_clock": "Clock Gap Overlap SystemClock VirtualClock",
    "whenidle_protocol": "Message ToolError ToolSchema",
    "whenidle_protocol.errors": "ReminderCode TaskCode",
    "whenidle_protocol.message_history": "Fate MessageHistory",
    "whenidle_protocol.preview": "preview",
    "whenidle_protocol.recurrence.failures": "RuleError",
    "whenidle_protocol.recurrence.occurrences": "Change Occurrence",
    "whenidle_protocol.rules.cron": "CronRule",
    "whenidle_protocol.rules.daily": "DailyRule",
    "whenidle_protocol.rules.interval": "EveryRule",
    "whenidle_protocol.rules.kinds": "Rule",
    "whenidle_protocol.rules.once": "AfterRule AtRule",
    "whenidle_protocol.rules.rrule": "RRuleRule",
    "whenidle_protocol.rules.weekly": "WeeklyRule",
    "whenidle_protocol.task_listing": "DamagedTask TaskListing",
    "whenidle_protocol.task_prompt": "PROMPT_KEY prompt_section",
    "whenidle_protocol.task_record": "TargetKind Task TaskStatus",
    "whenidle_protocol.task_requests": "CreateTask DeleteTask ListTasks UpdateTask",
    "whenidle_protocol.task_settings": "Caller TaskSettings",
    "whenidle_protocol.tool_exports": "anthropic_tools mcp_result mcp_tools openai_chat_tools openai_responses_tools",
}
"""The same for the interpreter: where the names are, module by module.

Each is imported when it is first asked for. pytest imports this package wherever it is installed, because of the
plugin, and should not wait for all of it; and a command needs but a part.
"""

if not TYPE_CHECKING:  # where any name would be taken for one of these
    _ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

    def __getattr__(name: str) -> object:
        """Import one of the names (PEP 562).

        Raises:
            AttributeError: it is none.
        """
        room = _ROOM_OF.get(name)
        if room is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        value = globals()[name] = getattr(__import__(room, fromlist=(name,)), name)
        return value

    def __dir__() -> list[str]:
        """Return the names, whether they have been imported or not."""
        return sorted({*globals(), *__all__})
