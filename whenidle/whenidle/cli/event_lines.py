"""Events of a session log, told to people and to programs.

A log is shown as it is: an event that cannot be understood is shown raw, since a damaged log is when one
most wants to look at it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from rich.text import Text

from whenidle.cli.text import shortened, visible
from whenidle_clock import format_instant, from_millis
from whenidle_protocol import EventRecord

TEXT_LIMIT = 320
"""Characters of a message or of an output that one line of a log shows."""

_STYLES = {"inbox": "green", "turn": "cyan", "schedule": "magenta"}


def event_document(seq: int, record: EventRecord) -> dict[str, object]:
    """Return the event as programs get it: `{seq, at, type, data}`, and `ignorable` where it is set."""
    document: dict[str, object] = {
        "seq": seq,
        "at": format_instant(from_millis(record.at_millis)),
        "type": record.type,
        "data": json.loads(record.data),
    }
    return {**document, "ignorable": True} if record.ignorable else document


def event_line(seq: int, record: EventRecord) -> Text:
    """Return the event as people get it: number, instant, type and what happened."""
    style = _STYLES.get(record.type.partition("/")[0], "yellow")
    return Text.assemble(
        (f"{seq:>5}", "dim"),
        "  ",
        format_instant(from_millis(record.at_millis)),
        "  ",
        (f"{visible(record.type):<15}", style),
        "  ",
        told(record),
    )


def told(record: EventRecord) -> str:
    """Return what the event says happened."""
    tell = _TELLERS.get(record.type)
    if tell is not None:
        try:
            # Once more, since what is not what this version writes can be a text anywhere.
            return visible(tell(json.loads(record.data)))
        except (ValueError, LookupError, TypeError, AttributeError):
            pass  # not what this version writes
    return shortened(record.data, TEXT_LIMIT)


def _ids(ids: list[str]) -> str:
    return visible(", ".join(ids))


def _insert(data: Mapping[str, Any]) -> str:
    wake = "" if data["wake"] else ", wakes nobody"
    where = f"{data['source']}, {data['lane']}{wake}"
    text = data["text"]
    if data["source"] == "schedule":
        # The second line says the same in every reminder; without it the rest fits a terminal.
        heading, _, rest = text.partition("\n")
        text = f"{heading} … {rest.partition(chr(10))[2]}"
    return f"{visible(data['id'])} ({visible(where)}): {shortened(text, TEXT_LIMIT)}"


def _start(data: Mapping[str, Any]) -> str:
    again = f" again (attempt {data['attempt']:d})" if data["attempt"] > 1 else ""
    return f"turn {data['turn']:d} takes {_ids(data['claimed'])}{again}"


def _abort(data: Mapping[str, Any]) -> str:
    removed = f"; removed {_ids(data['removed'])}" if data["removed"] else ""
    return f"turn {data['turn']:d} is cancelled: {shortened(data['cause'], TEXT_LIMIT)}{removed}"


def _end(data: Mapping[str, Any]) -> str:
    cause = f": {shortened(data['cause'], TEXT_LIMIT)}" if data.get("cause") else ""
    again = ", will be given again" if data.get("redeliver") else ""
    return f"turn {data['turn']:d} {visible(data['outcome'])}{again}{cause}"


def _note(data: Mapping[str, Any]) -> str:
    value = data["data"]
    if not (isinstance(value, dict) and "exitStatus" in value and "stdout" in value):
        return f"turn {data['turn']:d} notes {shortened(json.dumps(value, ensure_ascii=False), TEXT_LIMIT)}"
    note = cast("dict[str, Any]", value)
    parts = [f"turn {data['turn']:d} ran its command: exit {note['exitStatus']}"]
    parts += [f"{note['durationMillis']} ms"]
    parts += ["will run again"] if note.get("again") else []
    parts += ["out of time"] if note["timedOut"] else []
    parts += [f"{name}: {shortened(note[name], TEXT_LIMIT)}" for name in ("stdout", "stderr") if note[name]]
    return ", ".join(parts)


def _schedule(data: Mapping[str, Any]) -> str:
    if data["operation"] == "create":
        record = data["schedule"]
        due = visible(record["scheduledAt"])
        made = f"{visible(record['id'])} made ({rule(record)}), due {due}"
        return f"{made}: {shortened(record['prompt'], TEXT_LIMIT)}"
    verb = {"delete": "forgotten", "dispatch": "delivered"}[data["operation"]]
    return f"{visible(data['id'])} {verb}"


def rule(record: Mapping[str, Any]) -> str:
    """Return the rule of a reminder record: `after 60 s`, `at a time`, `every 300 s`."""
    match record["kind"]:
        case "after":
            return f"after {record['afterSeconds']} s"
        case "every":
            return f"every {record['everySeconds']} s"
        case kind:
            return f"{visible(kind)} a time"


_TELLERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "inbox/insert": _insert,
    "inbox/remove": lambda data: f"removed {_ids(data['ids'])}",
    "inbox/replace": lambda data: f"{visible(data['id'])} now says: {shortened(data['text'], TEXT_LIMIT)}",
    "turn/start": _start,
    "turn/claim": lambda data: f"turn {data['turn']:d} takes {_ids(data['ids'])} as well",
    "turn/abort": _abort,
    "turn/end": _end,
    "turn/note": _note,
    "schedule/change": _schedule,
}
