"""The log of one session, folded by the lab's own reader (SPEC 2.2, 2.5, 3.1, 5.3).

It reads the JSON of each record, and shares nothing with the runtime's fold but the rules, which it takes from
the contract. What cannot follow what came before is `Malformed`. What may follow in form, and yet is not what
the rules of the inbox ask for (another message than the first, a wrong attempt), is only noted beside what they
ask for, for `order` to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from whenidle_lab.invariants.facts import Dispatched, Ended, Message, Reminder, Removed, Started
from whenidle_lab.invariants.frames import announced_by, millis, parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from whenidle_lab.invariants.facts import Commit

_LAST_INSTANT = 253_402_300_799_999
"""The end of the year 9999, in milliseconds."""


class Malformed(Exception):
    """A log holds what cannot follow."""


@attrs.define
class OpenTurn:
    """A turn that has started and not ended."""

    number: int
    attempt: int
    claimed: list[Message]
    cause: str | None = None
    """Of the first cancel that was accepted for it."""


class Ledger:
    """What the log of a session says so far.

    Args:
        session: its id.
        seed: how many leading events were copied from another session, and own nothing.
    """

    def __init__(self, session: str, seed: int = 0) -> None:
        self.session: str = session
        self.seed: int = seed
        self.length: int = 0
        self.turns: int = 0
        self.turn: OpenTurn | None = None
        self.redelivery: tuple[list[Message], int] | None = None
        """What an interrupted turn left to the next, and the attempt that this will be."""
        self.awake: bool = False
        """The wake latch: set by a message that wakes, cleared by a cancel."""
        self.wakers: list[Message] = []
        """The messages that have set it since it was cleared last."""
        self.waking: int = 0
        """How many pending messages are a reason to run."""
        self.next_step: dict[str, Message] = {}
        self.next_turn: dict[str, Message] = {}
        self.messages: dict[str, Message] = {}
        """All messages the session ever owned."""
        self.reminders: dict[str, Reminder] = {}
        """The active ones, in the order of their creation."""
        self.used: set[str] = set()
        """Ids of reminders, of all times."""
        self.created_ns: int = 0
        """When the session was created, in monotonic time."""
        self.changed_ns: int = 0
        """When something in it last changed."""

    @property
    def is_runnable(self) -> bool:
        """Whether a turn is to start as soon as none runs."""
        return self.redelivery is not None or (self.awake and self.waking > 0)

    @property
    def due(self) -> int | None:
        """The earliest target of its reminders."""
        return min(reminder.target for reminder in self.reminders.values()) if self.reminders else None

    def claim(self) -> list[Message]:
        """Return what a turn that starts now has to take."""
        if self.redelivery is not None:
            return self.redelivery[0]
        return [*self.next_step.values(), *list(self.next_turn.values())[:1]]

    def append(self, records: Iterable[Mapping[str, Any]], commit: Commit) -> None:
        """Follow the log, and note in `commit` what it says.

        Raises:
            Malformed: something cannot follow.
        """
        for record in records:
            kind = record["type"]
            handler = (self._HANDLERS if self.length >= self.seed else self._INHERITED).get(kind)
            try:
                if handler is not None:  # else it is of a kind that a reader may pass over
                    handler(self, parsed(record["data"]), commit, record["at"])
            except Malformed as error:
                raise Malformed(f"event {self.length} of {self.session}: {error}") from error
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise Malformed(f"event {self.length} of {self.session}: {kind} has another form: {error!r}") from error
            self.length += 1

    # The inbox --------------------------------------------------------------------------------

    def _insert(self, data: Any, commit: Commit, _: int) -> None:
        message = Message(data["id"], data["lane"], data["wake"], data["text"], data["source"], commit.elsewhere)
        if message.id in self.messages and not self._is_over(self.messages[message.id]):
            raise Malformed(f"the id {message.id} is that of a message which is not done with")
        self.messages[message.id] = message
        self._lane(message)[message.id] = message
        self.waking += message.wake
        if message.wake:
            self.awake = True
            self.wakers.append(message)
        if message.source == "schedule":
            commit.announced.extend(announced_by(self.session, message.id, message.text))

    def _is_over(self, message: Message) -> bool:
        open_turn = self.turn.claimed if self.turn else []
        left = self.redelivery[0] if self.redelivery else []
        return message.id not in self._lane(message) and message not in open_turn and message not in left

    def _lane(self, message: Message) -> dict[str, Message]:
        if message.lane not in {"next-turn", "next-step"}:
            raise Malformed(f"there is no lane {message.lane!r}")
        return self.next_turn if message.lane == "next-turn" else self.next_step

    def _take(self, ids: Iterable[str]) -> list[Message]:
        taken: list[Message] = []
        for each in ids:
            message = self.next_step.pop(each, None) or self.next_turn.pop(each, None)
            if message is None:
                raise Malformed(f"no message {each} is pending")
            self.waking -= message.wake
            taken.append(message)
        return taken

    def _empty(self, ids: list[str], cause: str | None, commit: Commit) -> None:
        commit.removed.append(Removed(self.session, ids, [*self.next_step, *self.next_turn], cause))
        for message in self._take(ids):
            message.is_removed = True

    def _remove(self, data: Any, commit: Commit, _: int) -> None:
        self._empty(data["ids"], None, commit)

    def _replace(self, data: Any, _: Commit, __: int) -> None:
        message = self.next_step.get(data["id"]) or self.next_turn.get(data["id"])
        if message is None:
            raise Malformed(f"no message {data['id']} is pending")
        message.text = data["text"]

    # Turns ------------------------------------------------------------------------------------

    def _start(self, data: Any, commit: Commit, _: int) -> None:
        number, claimed, attempt = data["turn"], data["claimed"], data["attempt"]
        self._begin(number)
        due, due_attempt = self.claim(), 1 if self.redelivery is None else self.redelivery[1]
        commit.started.append(
            Started(self.session, number, claimed, [message.id for message in due], attempt, due_attempt)
        )
        if self.redelivery is not None and claimed == [message.id for message in due]:
            taken = due
        else:
            taken = self._take(claimed)
        for message in taken:
            message.is_claimed = True
        self.redelivery = None
        self.turn = OpenTurn(number, attempt, taken)

    def _begin(self, number: int) -> None:
        if self.turn is not None:
            raise Malformed(f"turn {number} starts while turn {self.turn.number} is open")
        if number != self.turns + 1:
            raise Malformed(f"turn {number} follows turn {self.turns}")
        self.turns = number

    def _open(self, number: int) -> OpenTurn:
        if self.turn is None or self.turn.number != number:
            raise Malformed(f"turn {number} is not open")
        return self.turn

    def _step(self, data: Any, commit: Commit, _: int) -> None:
        turn = self._open(data["turn"])
        due = list(self.next_step)
        commit.started.append(Started(self.session, turn.number, data["ids"], due, turn.attempt, turn.attempt))
        for message in self._take(data["ids"]):
            message.is_claimed = True
            turn.claimed.append(message)

    def _abort(self, data: Any, commit: Commit, _: int) -> None:
        turn = self._open(data["turn"])
        self._empty(data["removed"], data["cause"], commit)
        turn.cause = data["cause"] if turn.cause is None else turn.cause
        self.awake = False
        self.wakers.clear()

    def _end(self, data: Any, commit: Commit, _: int) -> None:
        turn, outcome, redeliver = self._open(data["turn"]), data["outcome"], data.get("redeliver", False)
        cancelled = turn.cause is not None
        if outcome not in {"completed", "aborted", "error", "interrupted"}:
            raise Malformed(f"there is no outcome {outcome!r}")
        if cancelled and outcome != "aborted":
            raise Malformed(f"turn {turn.number} was cancelled and is {outcome}")
        if redeliver and outcome != "interrupted":
            raise Malformed(f"turn {turn.number} is {outcome} and is to be redelivered")
        if redeliver:
            self.redelivery = (turn.claimed, turn.attempt + 1)
        elif outcome != "interrupted":
            for message in turn.claimed:
                message.is_served = True
        self.turn = None
        commit.ended.append(Ended(self.session, turn.number, outcome, redeliver, cancelled, turn.claimed))

    def _note(self, data: Any, _: Commit, __: int) -> None:
        self._open(data["turn"])

    def _inherit_start(self, data: Any, _: Commit, __: int) -> None:
        self._begin(data["turn"])
        self.turn = OpenTurn(data["turn"], 1, [])

    def _inherit_end(self, data: Any, _: Commit, __: int) -> None:
        self._open(data["turn"])
        self.turn = None

    # Reminders --------------------------------------------------------------------------------

    def _schedule(self, data: Any, commit: Commit, at: int) -> None:
        if data["version"] != 1:
            raise Malformed(f"a schedule/change of version {data['version']}")
        operation = data["operation"]
        if operation == "create":
            self._create(data["schedule"], commit)
            return
        reminder = self.reminders.get(data["id"])
        if reminder is None:
            raise Malformed(f"{operation} of {data['id']}, which is not active")
        if operation == "delete":
            del self.reminders[reminder.id]
            commit.deleted.append((self.session, reminder.id))
        elif operation == "dispatch":
            self._dispatch(reminder, data.get("acceptedAt"), commit, at)
        else:
            raise Malformed(f"there is no operation {operation!r}")

    def _create(self, fields: dict[str, Any], commit: Commit) -> None:
        identity, target = fields["id"], millis(fields["scheduledAt"])
        if identity in self.used:
            raise Malformed(f"the reminder id {identity} is used twice")
        reminder = Reminder(fields, target, target, fields.get("everySeconds", 0) * 1000, len(self.used))
        if (reminder.period > 0) != (fields["kind"] == "every"):
            raise Malformed(f"{identity} is of the kind {fields['kind']} and has a period of {reminder.period} ms")
        self.used.add(identity)
        self.reminders[identity] = reminder
        commit.made.append((self.session, reminder))

    def _dispatch(self, reminder: Reminder, accepted: str | None, commit: Commit, at: int) -> None:
        if (accepted is None) != (reminder.period == 0):
            raise Malformed(f"a dispatch of {reminder.id} has acceptedAt, or has none, unlike its kind")
        instant = None if accepted is None else millis(accepted)
        commit.dispatched.append(
            Dispatched(
                self.session,
                reminder.id,
                reminder.target,
                reminder.first,
                reminder.period,
                reminder.number,
                reminder.fields["prompt"],
                instant,
                at,
            )
        )
        if instant is not None:
            if instant < reminder.target:
                raise Malformed(f"a dispatch of {reminder.id} was accepted before it was due")
            reminder.target += ((instant - reminder.target) // reminder.period + 1) * reminder.period
        if instant is None or reminder.target > _LAST_INSTANT:
            del self.reminders[reminder.id]

    _HANDLERS: ClassVar[dict[str, Callable[[Ledger, Any, Commit, int], None]]] = {
        "inbox/insert": _insert,
        "inbox/remove": _remove,
        "inbox/replace": _replace,
        "turn/start": _start,
        "turn/claim": _step,
        "turn/abort": _abort,
        "turn/end": _end,
        "turn/note": _note,
        "schedule/change": _schedule,
    }
    _INHERITED: ClassVar[dict[str, Callable[[Ledger, Any, Commit, int], None]]] = {
        "turn/start": _inherit_start,
        "turn/end": _inherit_end,
    }
