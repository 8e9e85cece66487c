"""Pure values and decisions of whenidle: no event loop, no storage, no clock reads.

Everything that decides takes the present as an argument. The names here are those a host meets in
an answer, an error or a log; the decisions themselves are in the modules.
"""

from whenidle_protocol.errors import CorruptLog, ReminderCode, ToolError, UnknownEvent
from whenidle_protocol.events import Event, EventRecord, Lane, Message, Outcome, Source
from whenidle_protocol.schedule_change import AfterReminder, AtReminder, EveryReminder, Reminder
from whenidle_protocol.tool_schemas import ToolSchema, reminder_tools

__all__ = [
    "AfterReminder",
    "AtReminder",
    "CorruptLog",
    "Event",
    "EventRecord",
    "EveryReminder",
    "Lane",
    "Message",
    "Outcome",
    "Reminder",
    "ReminderCode",
    "Source",
    "ToolError",
    "ToolSchema",
    "UnknownEvent",
    "reminder_tools",
]
