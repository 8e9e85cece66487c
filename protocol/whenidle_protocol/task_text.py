"""The text of a task the quick way: the shapes that are expected, read and written by msgspec.

Each delivery reads a task and writes it again. What is here takes a fifth of the time of `wire`, and is right
or says nothing: whatever is unusual about a task or a text gives None, and `task_codec` goes the way that
explains what is wrong. What is written here is the same text to the byte.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from whenidle_clock.instants import format_instant, parse_instant
from whenidle_clock.zones import Gap, Overlap  # noqa: TC001 - msgspec resolves the fields' types
from whenidle_protocol.json_text import parse
from whenidle_protocol.json_values import MAX_SAFE_INTEGER
from whenidle_protocol.task_json import canonical_fields
from whenidle_protocol.task_record import LastDelivery, LastFailure, Target, TargetKind, Task, TaskStatus
from whenidle_protocol.task_rules import REMEMBERED_RULES, decode_rule, encode_rule

if TYPE_CHECKING:
    from whenidle_protocol.rules.kinds import Rule

_Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]


class _Target(
    Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True, frozen=True, gc=False
):
    # The fields of all shapes stand in the order of canonical JSON.
    created: bool = False
    cwd: str = ""
    kind: TargetKind
    preset: str = ""
    session_id: str | UnsetType = UNSET


class _Delivery(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    delivered_at: str
    scheduled_at: str
    target_session_id: str


class _Failure(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    failed_at: str
    reason: str
    scheduled_at: str
    target_session_id: str


class _Task(Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    catch_up_seconds: _Count | UnsetType = UNSET
    covered_at: str | UnsetType = UNSET
    created_at: str
    creator: str
    deliveries: _Count = 0
    failures: _Count = 0
    gap: Gap | UnsetType = UNSET
    id: str
    last_delivery: _Delivery | UnsetType = UNSET
    last_failure: _Failure | UnsetType = UNSET
    missed: _Count = 0
    overlap: Overlap | UnsetType = UNSET
    prompt: str
    rule: Raw
    scheduled_at: str
    skipped: _Count = 0
    status: TaskStatus
    target: _Target
    title: str
    updated_at: str
    version: Literal[1]


_KEPT_TARGETS: Final = 1024
"""The tasks of one session have the same target, and are read one after the other."""

_DECODER: Final = msgspec.json.Decoder(_Task)
_ENCODER: Final = msgspec.json.Encoder()


def read_task(text: str) -> Task | None:
    """Return the task that a text in canonical JSON of version 1 stands for; None if it may be something else."""
    try:
        given = _DECODER.decode(text)
        return Task(
            id=given.id,
            title=given.title,
            prompt=given.prompt,
            rule=_read_rule(bytes(given.rule)),
            target=_read_target(given.target),
            status=given.status,
            scheduled_at=parse_instant(given.scheduled_at),
            created_at=parse_instant(given.created_at),
            updated_at=parse_instant(given.updated_at),
            creator=given.creator,
            gap=given.gap or None,
            overlap=given.overlap or None,
            catch_up_seconds=None if given.catch_up_seconds is UNSET else given.catch_up_seconds,
            deliveries=given.deliveries,
            missed=given.missed,
            skipped=given.skipped,
            failures=given.failures,
            covered_at=None if given.covered_at is UNSET else parse_instant(given.covered_at),
            last_delivery=_read_delivery(given.last_delivery) if given.last_delivery else None,
            last_failure=_read_failure(given.last_failure) if given.last_failure else None,
        )
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def write_task(task: Task) -> str | None:
    """Return the text that stands for `task`; None if it holds what msgspec has no text for."""
    delivery, failure = task.last_delivery, task.last_failure
    given = _Task(
        catch_up_seconds=UNSET if task.catch_up_seconds is None else task.catch_up_seconds,
        covered_at=UNSET if task.covered_at is None else format_instant(task.covered_at),
        created_at=format_instant(task.created_at),
        creator=task.creator,
        deliveries=task.deliveries,
        failures=task.failures,
        gap=task.gap or UNSET,
        id=task.id,
        last_delivery=UNSET if delivery is None else _written_delivery(delivery),
        last_failure=UNSET if failure is None else _written_failure(failure),
        missed=task.missed,
        overlap=task.overlap or UNSET,
        prompt=task.prompt,
        rule=_written_rule(task.rule),
        scheduled_at=format_instant(task.scheduled_at),
        skipped=task.skipped,
        status=task.status,
        target=_written_target(task.target),
        title=task.title,
        updated_at=format_instant(task.updated_at),
        version=1,
    )
    try:
        return _ENCODER.encode(given).decode()
    except (UnicodeEncodeError, OverflowError):
        return None


@functools.lru_cache(maxsize=REMEMBERED_RULES)
def _read_rule(text: bytes) -> Rule:
    return decode_rule(parse(text.decode()))


@functools.lru_cache(maxsize=REMEMBERED_RULES)
def _written_rule(rule: Rule) -> Raw:
    # A rule is made of what its kind has read, so equal ones have equal texts.
    return Raw(canonical_fields(encode_rule(rule)).encode())


@functools.lru_cache(maxsize=_KEPT_TARGETS)
def _read_target(given: _Target) -> Target:
    session_id = None if given.session_id is UNSET else given.session_id
    return Target(given.kind, session_id, given.cwd, given.preset, given.created)


def _written_target(target: Target) -> _Target:
    session_id = UNSET if target.session_id is None else target.session_id
    return _Target(
        created=target.created, cwd=target.cwd, kind=target.kind, preset=target.preset, session_id=session_id
    )


def _read_delivery(given: _Delivery) -> LastDelivery:
    return LastDelivery(parse_instant(given.scheduled_at), parse_instant(given.delivered_at), given.target_session_id)


def _written_delivery(delivery: LastDelivery) -> _Delivery:
    return _Delivery(
        format_instant(delivery.delivered_at), format_instant(delivery.scheduled_at), delivery.target_session_id
    )


def _read_failure(given: _Failure) -> LastFailure:
    scheduled_at, failed_at = parse_instant(given.scheduled_at), parse_instant(given.failed_at)
    return LastFailure(scheduled_at, failed_at, given.target_session_id, given.reason)


def _written_failure(failure: LastFailure) -> _Failure:
    failed_at, scheduled_at = format_instant(failure.failed_at), format_instant(failure.scheduled_at)
    return _Failure(failed_at, failure.reason, scheduled_at, failure.target_session_id)
