"""The four task tools, answered for the client's session at whatever desk the server has (SPEC 6).

An answer is made as text, and the text of each task is kept: a list of a hundred tasks is then put together from a
hundred texts, where taking them apart and encoding them anew, twice, took longer than all else (decisions/0028).
"""

import json
from collections.abc import Mapping
from typing import Any, Self

import attrs

from whenidle.mcp.post import Post
from whenidle_actors import task_calls
from whenidle_actors.errors import StoreDamaged, StoreError
from whenidle_actors.stores.base import Store, TaskRow
from whenidle_actors.task_rows import entry_of
from whenidle_protocol.task_answers import entry_answer, internal_error
from whenidle_protocol.task_json import canonical_fields
from whenidle_protocol.task_listing import DamagedTask
from whenidle_protocol.task_requests import ListTasks
from whenidle_protocol.task_settings import Caller, TaskSettings

MOST_CHARACTERS = 4 * 1024 * 1024
"""Of task texts that are kept: a thousand tasks, unless their prompts are very long."""


@attrs.frozen
class Text:
    """Canonical JSON, and the same once more as the inside of a JSON string: an MCP result has both."""

    plain: str
    quoted: str

    @classmethod
    def of(cls, answer: dict[str, Any]) -> Self:
        """Return an answer as text."""
        plain = canonical_fields(answer)
        return cls(plain, json.dumps(plain, ensure_ascii=False)[1:-1])


@attrs.frozen
class Answer:
    """What a tool answers."""

    text: Text
    refused: bool


class ToolCalls:
    """Answers calls of the task tools.

    Args:
        post: where the tasks are.
        caller: the session that stands for the client.
        settings: the host's choices.
    """

    def __init__(self, post: Post, caller: Caller, settings: TaskSettings) -> None:
        self._post = post
        self._caller = caller
        self._settings = settings
        self._texts = _TaskTexts()

    async def answer(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        """Answer a call of one of the four tools; whatever is wrong with it is an answer too.

        Cancelled, it has changed nothing, or all that it was asked to.
        """
        try:
            request = task_calls.read(tool, arguments, self._settings)
            async with self._post.work() as stand:
                if isinstance(request, ListTasks):
                    return Answer(await self._list(stand.store, request), refused=False)
                answer = await task_calls.serve(stand.desk, request, self._caller)
        except Exception as error:  # noqa: BLE001 - it is logged, and what it says is no business of the client's
            return Answer(Text.of(task_calls.refusal(error, tool, self._caller.session_id)), refused=True)
        return Answer(Text.of(answer), refused=False)

    async def _list(self, store: Store, request: ListTasks) -> Text:
        """Return what `task_calls.serve` answers, as text."""
        try:
            page = await store.tasks(active=request.active, limit=request.limit, offset=request.offset)
            items = [self._texts.of(row) for row in page.rows]
        except StoreDamaged as error:
            raise internal_error() from error
        except StoreError as error:
            raise task_calls.uncertain(request) from error
        around = Text.of(
            {"items": [], "shown": len(items), "total": page.total, "limit": request.limit, "offset": request.offset}
        )
        return Text(
            around.plain.replace("[]", f"[{','.join([item.plain for item in items])}]", 1),
            around.quoted.replace("[]", f"[{','.join([item.quoted for item in items])}]", 1),
        )


class _TaskTexts:
    """The texts of tasks as the tools answer them, kept until the task changes or there are too many."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[TaskRow, Text]] = {}
        self._characters = 0

    def of(self, row: TaskRow) -> Text:
        """Return the text of a task, or of the fact that it is damaged, which is logged when it is found."""
        kept = self._kept.get(row.id)
        if kept is not None and kept[0] == row:
            return kept[1]
        entry = entry_of(row)
        if isinstance(entry, DamagedTask):
            task_calls.complain((entry,))
        text = Text.of(entry_answer(entry))
        if kept is not None:
            self._characters -= _characters(*kept)
        self._characters += _characters(row, text)
        if self._characters > MOST_CHARACTERS:
            self._kept.clear()
            self._characters = _characters(row, text)
        self._kept[row.id] = row, text
        return text


def _characters(row: TaskRow, text: Text) -> int:
    return len(row.data) + len(text.plain) + len(text.quoted)
