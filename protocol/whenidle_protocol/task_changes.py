"""What calls of the task tools do to a task, as decisions: the task as read in, the task to write out (SPEC 6.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_protocol.errors import TaskCode, ToolError
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.task_answers import conflict, limit_reached
from whenidle_protocol.task_ids import reserved_session_id
from whenidle_protocol.task_record import Target, TargetKind, Task, TaskStatus, stamp
from whenidle_protocol.task_rules import simplified
from whenidle_protocol.task_timing import begin, check_spacing, policies, policies_of

if TYPE_CHECKING:
    from datetime import datetime

    from whenidle_protocol.rules.kinds import Rule
    from whenidle_protocol.task_requests import CreateTask, DeleteTask, UpdateTask
    from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings
    from whenidle_protocol.task_timing import Policies


def create(  # noqa: PLR0913, PLR0917 - a decision is told all it depends on
    request: CreateTask, caller: Caller, now: datetime, task_id: str, settings: TaskSettings, counts: ActiveCounts
) -> Task:
    """Return the task that `request` makes at `now`.

    Args:
        request: what is asked for.
        caller: who asks; the host itself has an empty session id.
        now: the wall instant of the decision.
        task_id: the id of the task, never used before.
        settings: the choices of the host.
        counts: how many tasks are active on the host, and of the caller.

    Raises:
        ToolError: `not_future`, `time_out_of_range`, `frequency_too_high`, `invalid_target` or `limit_reached`.
    """
    chosen = policies(request.gap, request.overlap, settings)
    target = _target(request.target, caller, task_id, now)
    rule, first = begin(simplified(request.rule, chosen), now, chosen)
    _check_target_spacing(target, rule, first, chosen, settings)
    _check_limits(settings, counts, caller.session_id)
    return Task(
        id=task_id,
        title=request.title,
        prompt=request.prompt,
        rule=rule,
        target=target,
        status=TaskStatus.ACTIVE,
        scheduled_at=first,
        created_at=now,
        updated_at=now,
        creator=caller.session_id,
        gap=request.gap,
        overlap=request.overlap,
        catch_up_seconds=request.catch_up_seconds,
    )


def update(  # noqa: PLR0913, PLR0917 - a decision is told all it depends on
    task: Task, request: UpdateTask, caller: Caller, now: datetime, settings: TaskSettings, counts: ActiveCounts
) -> Task:
    """Return `task` changed as `request` says at `now`; `task` itself if that changes nothing.

    A field that is left out stays. A new rule begins at `now`; it takes the place of what was due and not
    delivered yet, and revives a task that has ended, but not one that is paused. `active` resumes at the
    first occurrence after `now`, and after what was decided about before the clock went back.

    Args:
        task: the task as read.
        request: what is asked for.
        caller: who asks; the host itself has an empty session id.
        now: the wall instant of the decision.
        settings: the choices of the host.
        counts: how many tasks are active on the host, and of the session that created `task`.

    Raises:
        ToolError: `schedule_conflict`, it has changed since it was read; `not_future`, `time_out_of_range`,
            `frequency_too_high`, `invalid_target` or `limit_reached`.
    """
    _check_version(task, request)
    at = stamp(task.updated_at, now)
    changed = _scheduled(_retargeted(task, request, caller, at), request, now, settings)
    changed = attrs.evolve(
        changed,
        title=task.title if request.title is None else request.title,
        prompt=task.prompt if request.prompt is None else request.prompt,
    )
    if changed == task:
        return task
    if (changed.rule, changed.target) != (task.rule, task.target):
        _check_target_spacing(
            changed.target, changed.rule, changed.scheduled_at, policies_of(changed, settings), settings
        )
    if changed.active and not task.active:
        _check_limits(settings, counts, task.creator)
    return attrs.evolve(changed, updated_at=at)


def check_delete(task: Task, request: DeleteTask) -> None:
    """Check that `task` may be deleted as `request` says.

    Raises:
        ToolError: `schedule_conflict`, it has changed since it was read.
    """
    _check_version(task, request)


def _retargeted(task: Task, request: UpdateTask, caller: Caller, at: datetime) -> Task:
    if request.target is None:
        return task
    target = _target(request.target, caller, task.id, at)
    return attrs.evolve(task, target=target)


def _scheduled(task: Task, request: UpdateTask, now: datetime, settings: TaskSettings) -> Task:
    """Return `task` with the rule, status and next occurrence that it is to have."""
    chosen = policies_of(task, settings)
    rule = None if request.rule is None else simplified(request.rule, chosen)
    if rule is not None and not _same(rule, task.rule):
        rule, first = begin(rule, now, chosen)
        status = TaskStatus.PAUSED if _stays_paused(task, request) else TaskStatus.ACTIVE
        return attrs.evolve(task, rule=rule, status=status, scheduled_at=first, covered_at=None)
    if request.active is False and task.active:
        return attrs.evolve(task, status=TaskStatus.PAUSED)
    if request.active and not task.active:
        following = task.rule.next(max(now, task.covered_at or now), **chosen)
        if following is None:
            raise ToolError(
                TaskCode.NOT_FUTURE,
                "The task has no occurrence left; to make it active again, give a new rrule in the same call.",
            )
        return attrs.evolve(task, status=TaskStatus.ACTIVE, scheduled_at=following)
    return task


def _stays_paused(task: Task, request: UpdateTask) -> bool:
    return request.active is False or (request.active is None and task.status is TaskStatus.PAUSED)


def _same(given: Rule, kept: Rule) -> bool:
    """Return whether a rule that is given is the one a task has; an interval need not say from when again."""
    if isinstance(given, EveryRule) and isinstance(kept, EveryRule) and given.anchor is None:
        return given.every_seconds == kept.every_seconds
    return given == kept


def _target(kind: TargetKind, caller: Caller, task_id: str, at: datetime) -> Target:
    if kind is TargetKind.NEW:
        return Target(kind, cwd=caller.cwd, preset=caller.preset)
    if kind is TargetKind.NEW_ONCE:
        return Target(kind, reserved_session_id(task_id, at), caller.cwd, caller.preset)
    if not caller.session_id:
        raise ToolError(
            TaskCode.INVALID_TARGET, "There is no calling session to be this_session; choose new_once or new."
        )
    return Target(kind, caller.session_id)


def _check_version(task: Task, request: UpdateTask | DeleteTask) -> None:
    if request.expected_updated_at not in {None, task.updated_at}:
        raise conflict(task.id)


def _check_target_spacing(
    target: Target, rule: Rule, first: datetime, chosen: Policies, settings: TaskSettings
) -> None:
    if target.kind is TargetKind.NEW:
        check_spacing(rule, first, chosen, settings)


def _check_limits(settings: TaskSettings, counts: ActiveCounts, creator: str) -> None:
    if settings.max_active is not None and counts.host >= settings.max_active:
        raise limit_reached(settings.max_active, of_session=False)
    if creator and settings.max_active_per_session is not None and counts.creator >= settings.max_active_per_session:
        raise limit_reached(settings.max_active_per_session, of_session=True)
