"""`whenidle task create`, `edit`, `pause`, `resume` and `delete`: host-wide tasks, made and changed."""

from datetime import datetime
from typing import Annotated

import attrs
import trio
from cyclopts import Parameter

from whenidle.cli.arguments import DEFAULT_STORE, Json, Store, TaskId, existing_store, text_argument
from whenidle.cli.exits import UsageError
from whenidle.cli.output import Output
from whenidle.cli.refusals import refusals, refusals_about
from whenidle.cli.rule_options import GapOption, OverlapOption, RuleOptions, read_rule
from whenidle.cli.target_options import TargetOptions
from whenidle.cli.task_lines import rule_words, state_line
from whenidle.cli.text import visible
from whenidle.cli.tokens import STDIN_MARK
from whenidle.cli.values import number, version
from whenidle_actors.offline import open_manager
from whenidle_clock import Gap, Overlap, SystemClock
from whenidle_protocol import task_changes
from whenidle_protocol.json_values import safe_integer
from whenidle_protocol.task_answers import delete_answer, task_answer
from whenidle_protocol.task_record import Task, TaskStatus
from whenidle_protocol.task_requests import CreateTask, DeleteTask, UpdateTask
from whenidle_protocol.task_settings import ActiveCounts, Caller, TaskSettings
from whenidle_protocol.task_tools import check_prompt, check_title

_RULES = "--rrule, --at, --after, --every, --daily, --weekly or --cron"
_TARGETS = "--session, --new-once or --new"

Expected = Annotated[
    str | None,
    Parameter(
        name="--expected-updated-at",
        metavar="INSTANT",
        help="Refuse if the task has changed since it had this updatedAt.",
    ),
]


def create(  # noqa: PLR0913 - one parameter an option
    title: Annotated[str, Parameter(help="A short name for people.")],
    prompt: Annotated[str, Parameter(help="What the agent is to do each time; - reads it from standard input.")],
    /,
    *,
    rule: RuleOptions = RuleOptions(),  # noqa: B008 - frozen, and how the parser takes defaults
    target: TargetOptions = TargetOptions(),  # noqa: B008 - the same
    gap: GapOption = None,
    overlap: OverlapOption = None,
    catch_up: Annotated[
        str | None, Parameter(metavar="SECONDS", help="Skip occurrences that are later than this.")
    ] = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Make a task: its prompt goes to an agent, as an instruction, whenever its rule says."""
    choices = _Choices(gap, overlap, _catch_up(catch_up))
    trio.run(_create, title, prompt, rule, target, choices, store, Output.standard(json=json))


def edit(  # noqa: PLR0913 - one parameter an option
    task: TaskId,
    /,
    *,
    title: Annotated[str | None, Parameter(metavar="TITLE", help="Its new name.")] = None,
    prompt: Annotated[str | None, Parameter(metavar="PROMPT", help="Its new prompt; - reads standard input.")] = None,
    rule: RuleOptions = RuleOptions(),  # noqa: B008 - as in create
    target: TargetOptions = TargetOptions(),  # noqa: B008 - the same
    expected_updated_at: Expected = None,
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Change a task; what is not given stays. A new rule begins now, and revives a task that has ended."""
    expected = version("--expected-updated-at", expected_updated_at)
    request = UpdateTask(task, title, prompt, expected_updated_at=expected)
    trio.run(_edit, request, rule, target, store, Output.standard(json=json))


def pause(task: TaskId, /, *, store: Store = DEFAULT_STORE, json: Json = False) -> None:
    """Pause a task: nothing comes due and nothing accumulates."""
    trio.run(_change, UpdateTask(task, active=False), Caller(""), store, Output.standard(json=json))


def resume(task: TaskId, /, *, store: Store = DEFAULT_STORE, json: Json = False) -> None:
    """Let a paused task come due again, from its next occurrence on."""
    trio.run(_change, UpdateTask(task, active=True), Caller(""), store, Output.standard(json=json))


def delete(
    task: TaskId, /, *, expected_updated_at: Expected = None, store: Store = DEFAULT_STORE, json: Json = False
) -> None:
    """Delete a task and its history; a message that it has put into an inbox already stays there."""
    request = DeleteTask(task, version("--expected-updated-at", expected_updated_at))
    trio.run(_change, request, Caller(""), store, Output.standard(json=json))


@attrs.frozen
class _Choices:
    """What is fixed when a task is made, besides its rule and target."""

    gap: Gap | None
    overlap: Overlap | None
    catch_up_seconds: int | None


async def _create(  # noqa: PLR0913, PLR0917 - what the options say
    title: str, prompt: str, options: RuleOptions, wanted: TargetOptions, choices: _Choices, store: str, output: Output
) -> None:
    _check_standard_input(title, prompt, options)
    chosen = wanted.chosen()
    if chosen is None:
        raise UsageError(f"say where the task is delivered: {_TARGETS}")
    rule = await read_rule(options)
    if rule is None:
        raise UsageError(f"say when the task comes due: {_RULES}")
    target, caller = chosen
    request = CreateTask(
        await _title(title),
        await _prompt(prompt),
        rule,
        target,
        choices.gap,
        choices.overlap,
        choices.catch_up_seconds,
    )
    clock = SystemClock()
    with refusals():
        # What is going to be refused must not leave an empty store behind.
        task_changes.create(request, caller, clock.now(), "task", TaskSettings(), ActiveCounts())
        async with open_manager(store, clock=clock) as manager:
            task = await manager.create_task(request, caller)
    output.answer(task_answer(task), f"{state_line(task, clock.now())}, {visible(rule_words(task.rule))}")


async def _edit(request: UpdateTask, options: RuleOptions, wanted: TargetOptions, store: str, output: Output) -> None:
    _check_standard_input(request.title, request.prompt, options)
    chosen = wanted.chosen()
    rule = await read_rule(options)
    if (request.title, request.prompt, rule, chosen) == (None, None, None, None):
        raise UsageError(f"say what to change: --title, --prompt, a rule ({_RULES}) or a target ({_TARGETS})")
    target, caller = chosen or (None, Caller(""))
    completed = attrs.evolve(
        request,
        title=None if request.title is None else await _title(request.title),
        prompt=None if request.prompt is None else await _prompt(request.prompt),
        rule=rule,
        target=target,
    )
    await _change(completed, caller, store, output)


async def _title(text: str) -> str:
    with refusals():
        return check_title(await text_argument(text, "TITLE"))


async def _prompt(text: str) -> str:
    with refusals():
        return check_prompt(await text_argument(text, "PROMPT"))


async def _change(request: UpdateTask | DeleteTask, caller: Caller, store: str, output: Output) -> None:
    task_id = request.id
    path, clock = existing_store(store), SystemClock()
    with refusals_about(task_id):
        async with open_manager(path, clock=clock) as manager:
            task = await manager.edit_task(request, caller)
    if task is None:
        output.answer(delete_answer(task_id), f"{visible(task_id)} is deleted")
    else:
        output.answer(task_answer(task), _changed_line(task, request, clock.now()))


def _changed_line(task: Task, request: UpdateTask | DeleteTask, now: datetime) -> str:
    line = state_line(task, now)
    ended_and_paused = isinstance(request, UpdateTask) and request.active is False and task.status is TaskStatus.ENDED
    return f"{line}; there is nothing to pause" if ended_and_paused else line


def _check_standard_input(title: str | None, prompt: str | None, options: RuleOptions) -> None:
    if [title, prompt, options.rrule].count(STDIN_MARK) > 1:
        raise UsageError("standard input can be read for one text only; write the others, or --rrule @FILE")


def _catch_up(text: str | None) -> int | None:
    if text is None:
        return None
    seconds = safe_integer(number("--catch-up", text))
    if seconds is None or seconds < 0:
        raise UsageError(f"--catch-up takes a whole number of seconds from 0 on, not {text[:40]!r}")
    return seconds
