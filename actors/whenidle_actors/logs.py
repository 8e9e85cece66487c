"""How the runtime logs (SPEC 7.4): stable event names, fields, and no words of others above DEBUG.

Every record of a `whenidle.*` logger has an attribute `event`, one of the names in `docs/operations.md`, and further
attributes with what it is about. Prompts, titles and messages are never in it. The text of an exception that is not
a store's may repeat one, since anybody's code runs in a turn: above DEBUG its type and where it was raised are logged,
and in full only at DEBUG. Whatever text there is stays on its line: a character that cannot be seen is written out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from whenidle_actors.errors import StoreError
from whenidle_actors.observation import EventKind, HostEvent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

events_logger: logging.Logger = logging.getLogger("whenidle.events")

_OTHERS_WORDS: Final = frozenset({"cause", "error"})
"""Details of events that may repeat a prompt."""

_FIELDS: Final = {"message": "message_id"}
"""Details that have another name in a record, which has an attribute of theirs."""

_INFO: Final = frozenset(
    {
        EventKind.AGENT_RESTARTED,
        EventKind.SESSION_CREATED,
        EventKind.REMINDER_CREATED,
        EventKind.REMINDER_DELETED,
        EventKind.REMINDER_DELIVERED,
        EventKind.TASK_CREATED,
        EventKind.TASK_CHANGED,
        EventKind.TASK_DELETED,
        EventKind.TASK_DELIVERED,
        EventKind.TURN_ENDED,
        EventKind.CLOCK_STEPPED,
        EventKind.HOST_STOPPED,
    }
)
"""What an operator would want to read back later; all else is DEBUG, or is logged as a failure elsewhere."""

_DEEPEST: Final = 10
"""Causes of causes that are shown; a longer chain is a loop or a flood."""


class Shown(Exception):
    """Stands in a log for an exception, with its traceback and as much of its text as is to be shown."""

    def __init__(self, text: str, kind: type[BaseException]) -> None:
        super().__init__(text)
        self.kind: type[BaseException] = kind
        """The type of the exception it stands for."""


def report(
    logger: logging.Logger,
    level: int,
    event: str,
    message: str,
    *args: object,
    error: BaseException | None = None,
    **fields: object,
) -> None:
    """Log that `event` happened.

    Args:
        logger: one of `whenidle.*`.
        level: of `logging`; above DEBUG the text of `error` is left out unless it is a store's.
        event: stable name.
        message: for people, in the style of `logging`, with `args`.
        args: what goes into it.
        error: what was raised.
        fields: attributes of the record.
    """
    if not logger.isEnabledFor(level):
        return
    shown = tuple(printable(each) if isinstance(each, str) else each for each in args)
    extra = _printable_fields(fields)
    extra["event"] = event
    if error is None:
        logger.log(level, message, *shown, extra=extra, stacklevel=2)
        return
    extra["error"] = type(error).__name__
    logger.log(level, message, *shown, extra=extra, exc_info=_info(error, in_full=level <= logging.DEBUG), stacklevel=2)
    if level > logging.DEBUG and logger.isEnabledFor(logging.DEBUG):
        message_in_full, in_full = f"{message}; in full", _info(error, in_full=True)
        logger.debug(message_in_full, *shown, extra=extra, exc_info=in_full, stacklevel=2)


def log_event(event: HostEvent) -> None:
    """Log what happened on a host, without the words of others."""
    level = logging.INFO if event.kind in _INFO else logging.DEBUG
    if not events_logger.isEnabledFor(level):
        return
    fields = _printable_fields(
        {_FIELDS.get(name, name): value for name, value in event.detail.items() if name not in _OTHERS_WORDS}
    )
    told = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
    message, session_id = event.kind.replace("-", " "), printable(event.session_id)
    extra = {"event": event.kind.value, "session": session_id, **fields, "sequence": event.sequence}
    events_logger.log(
        level, "%s: %s%s", session_id or "host", message, f": {printable(told)}" if told else "", extra=extra
    )


def printable(text: str) -> str:
    r"""Return `text` with each character that is not seen, or breaks the line, written out: `\n`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _printable_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record: ids among them may come from a log that somebody else wrote."""
    return {name: _printable(value) for name, value in fields.items()}


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return [_printable(each) for each in cast("Sequence[Any]", value)]
    return value


def described(error: BaseException) -> str:
    """Return type and text of an exception, on one line."""
    return printable(f"{type(error).__name__}: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """Return the text of an exception, whatever its class does when it is asked."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot be told about is one all the same
        return "(it has no text)"


def _info(error: BaseException, *, in_full: bool) -> tuple[type[BaseException], BaseException, Any]:
    shown = _shown(error, _DEEPEST, in_full=in_full)
    return type(shown), shown, shown.__traceback__


def _shown(error: BaseException, depth: int, *, in_full: bool) -> Exception:
    """Return what stands for an exception and for those that led to it."""
    known = in_full or isinstance(error, StoreError)
    text = described(error) if known else f"{type(error).__name__} (level DEBUG has its text)"
    shown: Exception = Shown(text, type(error))
    if members := _members(error):
        shown = ExceptionGroup(text, [_shown(each, depth - 1, in_full=in_full) for each in members[:_DEEPEST]])
    shown.__traceback__ = error.__traceback__
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and depth > 0:
        shown.__cause__ = _shown(before, depth - 1, in_full=in_full)
    return shown


def _members(error: BaseException) -> tuple[BaseException, ...]:
    """Return what a group holds; nothing of any other exception."""
    is_group = issubclass(type(error), BaseExceptionGroup)
    return getattr(error, "exceptions", ()) if is_group else ()
