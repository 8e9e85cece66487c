"""What there is to see of a host, or of a store, at one moment: values, and their JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import attrs
from cattrs import Converter
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from whenidle_clock import format_instant, parse_instant

AGENTS_SHOWN: Final = 200
"""Agents in a view; those at work come first, so that those left out are idle."""
COMING_SHOWN: Final = 20
DELIVERIES_SHOWN: Final = 20
STEPS_SHOWN: Final = 10


class NoView(ValueError):
    """Text that is not the JSON of a view."""


@attrs.frozen
class AgentView:
    """One agent, or a session that has none in memory and something to do or to come."""

    session: str
    phase: str
    """Of a host's agent the phase in full. Otherwise `asleep`, or what the log says: `turn open`, `waiting`."""
    mailbox: int | None = None
    """Messages in the actor's mailbox; None where no host says."""
    inbox: int | None = None
    """Messages in the inbox; None where that is not known."""
    turn: int | None = None
    """Number of the turn that runs."""
    began: datetime | None = None
    """When it began, if that was seen."""


@attrs.frozen
class Coming:
    """Something that comes due."""

    due: datetime
    what: str
    """`reminder`, or a task's title."""
    where: str
    """Session id, or in words where a task goes."""


@attrs.frozen
class Delivered:
    """A delivery."""

    at: datetime
    session: str
    what: str
    """Ids of what was delivered."""
    late_millis: int
    """How late the latest of it was."""


@attrs.frozen
class ClockStep:
    """A step of the wall clock."""

    at: datetime
    """What the clock showed after it."""
    by_millis: int


@attrs.frozen
class View:
    """All there is to see. Instants are UTC."""

    store: str
    now: datetime
    """What the host's clock shows, or whoever reads the store."""
    pid: int | None = None
    """Of the host that tells; None if this was read from the store."""
    began: datetime | None = None
    """Since when the host tells."""
    agent_count: int = 0
    """Agents in memory, in the view or not; of a store the sessions that have something to do or to come."""
    running: int = 0
    """Turns that run."""
    waiting: int = 0
    """Turns that wait for a slot."""
    task_count: int = 0
    """Active tasks."""
    agents: tuple[AgentView, ...] = ()
    coming: tuple[Coming, ...] = ()
    deliveries: tuple[Delivered, ...] = ()
    """The latest first."""
    steps: tuple[ClockStep, ...] = ()
    """The latest first; only a host sees any."""


def document(view: View) -> dict[str, Any]:
    """Return a view as a JSON object; fields are named as here but in camel case, instants are in wire form."""
    written: dict[str, Any] = _CONVERTER.unstructure(view)
    return written


def read_document(value: object) -> View:
    """Return the view of a JSON value; keys that are not known here are passed over.

    Raises:
        NoView: it is none.
    """
    if not isinstance(value, dict):
        raise NoView("it is no JSON object")
    try:
        return _CONVERTER.structure(value, View)
    except (BaseValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise NoView("it is no view") from error


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _names(shape: type[attrs.AttrsInstance]) -> dict[str, Any]:
    return {field.name: override(rename=_camel(field.name)) for field in attrs.fields(shape)}


_CONVERTER = Converter()
_CONVERTER.register_unstructure_hook(datetime, format_instant)
_CONVERTER.register_structure_hook(datetime, lambda value, _: parse_instant(value))
for _shape in (AgentView, Coming, Delivered, ClockStep, View):  # those that others hold before them
    _CONVERTER.register_unstructure_hook(_shape, make_dict_unstructure_fn(_shape, _CONVERTER, **_names(_shape)))
    _CONVERTER.register_structure_hook(_shape, make_dict_structure_fn(_shape, _CONVERTER, **_names(_shape)))
