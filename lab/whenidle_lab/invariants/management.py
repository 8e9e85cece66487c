"""Answers of management calls agree with the log (SPEC 5.4 to 5.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from whenidle_lab.invariants.books import START
from whenidle_lab.invariants.calls import Calls
from whenidle_lab.invariants.frames import millis
from whenidle_lab.invariants.task_answers import complaint_of_task_answer
from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.calls import Call, Reminders
    from whenidle_lab.invariants.facts import Reminder
    from whenidle_lab.invariants.walls import Moment
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World

_EVER: Final = 1 << 62
"""Later than any instant, in milliseconds."""

_ADDED: Final = {"state", "deliveryMode", "scheduledAt"}
"""What an answer shows of a reminder beside what was created."""


class AnswersAgree(Invariant):
    """The answer of each management call is what the log said at some moment while the call was in flight.

    What a call says it has created, changed or deleted was changed meanwhile, and by no other call. What depends on
    the time fits what the wall showed meanwhile. That something could not be confirmed is no answer where
    nothing has ever failed.
    """

    name = "answers-agree"
    listens: ClassVar[frozenset[What]] = frozenset(
        {What.CALL_BEGAN, What.CALL_ENDED, What.COMMIT_DURABLE, What.LIFE_BEGAN}
    )

    def __init__(self, books: Books) -> None:
        self._books = books
        self._calls = Calls(books)
        self._claimed: set[tuple[str, str, str]] = set()
        """What calls have said to have created or deleted: what, of which agent, which."""
        self._hides = False
        self._now = START

    def begin(self, world: World) -> None:  # noqa: ARG002 - the books know it
        """Learn whether the host hides tasks from agents."""
        suites = self._books.options.get("suites", ())
        self._hides = any(getattr(suite, "_may", None) is not None for suite in suites)

    def happened(self, happening: Happening) -> None:
        """Judge an answer."""
        call = self._calls.take(happening)
        if call is not None and "answer" in happening.detail and call.tool.startswith("schedule_"):
            self._now = self._books.walls.moment(happening)
            self._check(call, happening.detail["answer"])

    def _check(self, call: Call, answer: Any) -> None:
        complaint = self._complaint(call, answer)
        if complaint:
            self.fail(f"{call.tool}({dict(call.arguments)}) of {call.agent} is answered {answer}: {complaint}")

    def _complaint(self, call: Call, answer: Any) -> str:
        if isinstance(answer, list):
            return self._listed(call, cast("list[dict[str, Any]]", answer))
        if "code" in answer and "message" in answer:
            return self._refused(answer["code"])
        if "deliveryMode" in answer:
            return self._created(call, answer)
        if call.tool == "schedule_delete":
            return self._deleted(call, answer)
        if answer.get("deleted") and not self._is_first("delete", "", answer["id"]):
            return "another call has deleted it"
        return complaint_of_task_answer(call, answer, hides=self._hides)

    def _refused(self, code: str) -> str:
        if code == "corrupt_schedule_log":
            return "the log is sound"
        doubtful = code in {"persistence_uncertain", "internal_error"}
        if doubtful and not self._books.troubles and not self._books.stage.faults:
            return "nothing has failed so far"
        return ""

    def _created(self, call: Call, answer: dict[str, Any]) -> str:
        reminder, handed_in = call.made.get(answer["id"], (None, call.began))
        if reminder is None:
            return "no such reminder was created meanwhile"
        if not self._is_first("create", call.agent, answer["id"]):
            return "another call has created it"
        if {**reminder.fields, "state": "scheduled", "deliveryMode": "session-local"} != answer:
            return f"what was created is {reminder.fields}"
        return self._made_otherwise(call, reminder, handed_in)

    def _made_otherwise(self, call: Call, reminder: Reminder, handed_in: Moment) -> str:
        if reminder.fields["prompt"] not in call.arguments["prompt"]:
            return "that is another prompt"
        walls = self._books.walls
        seconds = reminder.fields.get("afterSeconds", reminder.fields.get("everySeconds"))
        if seconds is None:
            fits = walls.showed(call.began, handed_in, 0, reminder.first - 1)
            return "" if fits else "its target was not in the future"
        made = reminder.first - seconds * 1000
        fits = walls.showed(call.began, handed_in, made, made)
        return "" if fits else f"it counts from {made}; the wall showed {list(walls.readings(call.began, handed_in))}"

    def _deleted(self, call: Call, answer: dict[str, Any]) -> str:
        identity = answer["id"]
        if answer["deleted"]:
            if identity not in call.deleted:
                return "it was not deleted meanwhile"
            return "" if self._is_first("delete", call.agent, identity) else "another call has deleted it"
        if all(any(fields["id"] == identity for fields, _ in moment) for moment in call.reminders):
            return "it was active all the time"
        return ""

    def _listed(self, call: Call, answer: list[dict[str, Any]]) -> str:
        shown = [
            ({key: value for key, value in item.items() if key not in _ADDED}, millis(item["scheduledAt"]))
            for item in answer
        ]
        if not any(shown == _as_shown(moment) for moment in call.reminders):
            return f"active were, at one moment or another, {[_as_shown(moment) for moment in call.reminders]}"
        low = max((millis(item["scheduledAt"]) for item in answer if item["state"] == "overdue"), default=0)
        high = min((millis(item["scheduledAt"]) for item in answer if item["state"] == "scheduled"), default=_EVER) - 1
        now = self._now
        if not self._books.walls.showed(call.began, now, low, high):
            readings = list(self._books.walls.readings(call.began, now))
            return f"the states hold between {low} and {high}; the wall showed {readings}"
        return ""

    def _is_first(self, what: str, agent: str, identity: str) -> bool:
        key = (what, agent, identity)
        fresh = key not in self._claimed
        self._claimed.add(key)
        return fresh


def _as_shown(moment: Reminders) -> list[tuple[dict[str, Any], int]]:
    return [({key: value for key, value in fields.items() if key not in _ADDED}, target) for fields, target in moment]
