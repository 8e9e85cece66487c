"""Which occurrences of which tasks a message delivers: `task_framing.frame`, read backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from whenidle_protocol.events import Source
from whenidle_protocol.json_text import parse

if TYPE_CHECKING:
    from whenidle_protocol.events import Message

_ONE: Final = "[SCHEDULED TASK]"
_SEVERAL: Final = "[SCHEDULED TASK BATCH]"


def delivered_by(message: Message) -> tuple[tuple[str, str], ...]:
    """Return `(task id, occurrence)` of what `message` delivers, the occurrence in wire form; empty if no task.

    Every text in a frame is a JSON string on a line of its own, so that no title or prompt can pass for another
    line of it. A message that users sent delivers nothing, whatever it says.
    """
    if message.source is not Source.SCHEDULE:
        return ()
    heading, *lines = message.text.split("\n")
    fields = {name: text for name, _, text in (line.partition(": ") for line in lines)}
    try:
        if heading == _ONE:
            return ((str(parse(fields["task_id_json"])), fields["occurrence_at"]),)
        if heading == _SEVERAL:
            tasks = cast("list[dict[str, Any]]", parse(fields["tasks_json"]))
            return tuple((str(each["task_id"]), str(each["occurrence_at"])) for each in tasks)
    except (ValueError, LookupError, TypeError):
        pass  # the host's own code gave it that source
    return ()
