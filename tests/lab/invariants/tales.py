from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from whenidle_lab.invariants import standard_invariants
from whenidle_lab.scenario import Broken, EachRound
from whenidle_lab.trace import Happening, What
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import EventRecord
from whenidle_protocol.session_state import SessionState, apply_record, index_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from whenidle_lab.world import World

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z in milliseconds."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Record = tuple[str, Any]
"""The type of an event and its payload."""


def text_of(instant: int) -> str:
    """Return milliseconds since the epoch as on the wire."""
    text = (EPOCH + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


class Tale:
    """A trace made by hand, judged by all standard invariants as it goes on.

    Its commits have the index that the runtime's own fold gives them, unless they are told another.
    """

    def __init__(self, *, bound: float = 600.0, **options: Any) -> None:
        self.wall = START
        self.ns = 0
        self._number = 0
        self._life = -1
        self._commits = 0
        self.suites: list[Any] = [SimpleNamespace(name="reminders"), SimpleNamespace(name="tasks")]
        self.agents: list[Any] = []
        self.states: dict[str, SessionState] = {}
        self.versions: dict[str, int] = {}
        scenario = SimpleNamespace(options=lambda: options, bound=bound)
        services = SimpleNamespace(registry=SimpleNamespace(live={}), alarm=SimpleNamespace(target=lambda _: None))
        host = SimpleNamespace(agents=self.agents, suites=self.suites, _services=services)
        clock = SimpleNamespace(monotonic_ns=0, now_millis=lambda: self.wall)
        self.stub = SimpleNamespace(scenario=scenario, host=host, before_ns=0, clock=clock, tasks=list)
        self.world = cast("World", self.stub)
        self.invariants = standard_invariants()
        for invariant in self.invariants:
            invariant.begin(self.world)
        self.life()

    # What happens -----------------------------------------------------------------------------

    def tell(self, what: What, agent: str = "", **detail: Any) -> None:
        """Let something happen now."""
        happening = Happening(0, self._life, self.ns, self.wall, what, agent, detail)
        for invariant in self.invariants:
            if what in invariant.listens:
                invariant.happened(happening)

    def life(self, down: float = 0.0) -> None:
        """Let a process begin."""
        self._life += 1
        self.wall += int(down * 1000)
        self.tell(What.LIFE_BEGAN, down=down)

    def die(self) -> None:
        """Let the process die."""
        self.tell(What.LIFE_ENDED, how="crashed")

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.wall += int(seconds * 1000)
        self.ns += int(seconds * 1_000_000_000)
        self.stub.clock.monotonic_ns = self.ns

    def step_wall(self, seconds: float) -> None:
        """Step the wall clock."""
        self.wall += int(seconds * 1000)
        self.tell(What.CLOCK, how="step", by=float(seconds), announced=True)

    def look(self) -> None:
        """Have the invariants look at the runtime."""
        for invariant in self.invariants:
            if isinstance(invariant, EachRound):
                invariant.look(self.world)

    def settle(self) -> None:
        """Have the run judged as a whole, long after faults have stopped."""
        self.tell(What.FAULTS_STOPPED)
        self.wait(600)
        self.judge()

    def judge(self) -> None:
        """Have the run judged as a whole."""
        for invariant in self.invariants:
            invariant.settled(self.world)

    # Commits ----------------------------------------------------------------------------------

    def hand_in(self) -> int:
        """Let a commit be handed in, and return its number."""
        number, self._commits = self._commits, self._commits + 1
        self.tell(What.COMMIT_BEGAN, commit=number)
        return number

    def durable(
        self,
        number: int,
        session: str = "",
        *records: Record,
        created: Iterable[str] = (),
        seeds: Mapping[str, int] | None = None,
        expected: int | None = None,
        index: tuple[int | None, bool] | None = None,
        tasks: Iterable[dict[str, Any]] = (),
        receipts: Iterable[dict[str, Any]] = (),
        elsewhere: bool = False,
        at: int | None = None,
    ) -> None:
        """Let a commit become durable, be it the host's or, `elsewhere`, a manager's; its records are dated `at`."""
        dated = self.wall if at is None else at
        for each in created:
            self.states[each] = SessionState(seed_length=(seeds or {}).get(each, 0))
        appends = []
        if session:
            state = self.states[session]
            length = state.length
            for kind, data in records:
                with contextlib.suppress(CorruptLog):
                    apply_record(state, EventRecord(kind, dated, json.dumps(data)))
            due, runnable = index_of(state) if index is None else index
            appends.append(
                {
                    "session": session,
                    "expected": length if expected is None else expected,
                    "due": due,
                    "runnable": runnable,
                    "records": [{"type": kind, "at": dated, "data": json.dumps(data)} for kind, data in records],
                }
            )
        more: dict[str, Any] = {"elsewhere": True} if elsewhere else {}
        self.tell(
            What.COMMIT_DURABLE,
            commit=number,
            created=list(created),
            seeds=dict(seeds or {}),
            appends=appends,
            tasks=list(tasks),
            receipts=list(receipts),
            **more,
        )

    def commit(self, session: str = "", *records: Record, **more: Any) -> None:
        """Let a commit be handed in, become durable, and be reported done."""
        number = self.hand_in()
        self.durable(number, session, *records, **more)
        self.tell(What.COMMIT_ENDED, commit=number, fate="done", error=None)

    def agent(self, session: str = "ada") -> None:
        """Let a session be created, and its agent be started."""
        self.commit(created=[session])
        self.announce("agent-started", session)

    # Agents -----------------------------------------------------------------------------------

    def announce(self, event: str, session: str = "ada", **detail: Any) -> None:
        """Let the host announce something."""
        self.tell(What.HOST, session, event=event, **detail)

    def claim(self, session: str = "ada") -> None:
        """Let an agent be claimed."""
        self.announce("maintenance-started", session)

    def release(self, session: str = "ada") -> None:
        """Let the claim be released."""
        self.announce("maintenance-ended", session, outcome="completed")

    def enter(self, turn: int = 1, messages: Iterable[str] = ("m0",), attempt: int = 1, agent: str = "ada") -> None:
        """Let a turn function be entered."""
        self.tell(
            What.TURN_BEGAN,
            agent,
            turn=turn,
            attempt=attempt,
            redelivered=attempt > 1,
            messages=list(messages),
            fault=None,
        )

    def leave(self, turn: int = 1, how: str = "returned", agent: str = "ada") -> None:
        """Let a turn function be left."""
        self.tell(What.TURN_ENDED, agent, turn=turn, how=how, error=None)

    def send(self, message: str = "m0", text: str = "hello", how: str = "followup", agent: str = "ada") -> None:
        """Let a message be sent, kept and accepted."""
        self.tell(What.SEND_BEGAN, agent, send=self._next(), how=how, text=text)
        lane = "next-turn" if how == "followup" else "next-step"
        self.commit(agent, insert(message, text, lane=lane, wake=how != "inject"))
        self.tell(What.SEND_ENDED, agent, send=self._number, message=message)

    def run(self, turn: int = 1, messages: Iterable[str] = ("m0",), agent: str = "ada") -> None:
        """Let a turn take messages, run and complete."""
        self.commit(agent, start(turn, messages))
        self.enter(turn, messages, agent=agent)
        self.leave(turn, agent=agent)
        self.commit(agent, end(turn))

    def deliver(
        self, message: str, *reminders: tuple[str, int], agent: str = "ada", accepted: int | None = None
    ) -> None:
        """Let occurrences of reminders be delivered, each with the prompt `tea`, in a claim of their own."""
        self.claim(agent)
        dispatches = [dispatch(identity, accepted) for identity, _ in reminders]
        self.commit(agent, insert(message, reminder_text(*reminders), source="schedule"), *dispatches)
        self.release(agent)

    def call(self, tool: str, arguments: Mapping[str, Any], agent: str = "ada") -> int:
        """Let a tool be called, and return the number of the call."""
        self.tell(What.CALL_BEGAN, agent, call=self._next(), tool=tool, arguments=dict(arguments))
        return self._number

    def answer(self, call: int, answer: Any, agent: str = "ada") -> None:
        """Let a call be answered."""
        self.tell(What.CALL_ENDED, agent, call=call, answer=answer)

    def _next(self) -> int:
        self._number += 1
        return self._number


def insert(
    message: str, text: str = "hello", *, lane: str = "next-turn", wake: bool = True, source: str = "user"
) -> Record:
    """Return the insertion of a message."""
    return "inbox/insert", {"id": message, "lane": lane, "wake": wake, "text": text, "source": source}


def start(turn: int, claimed: Iterable[str], attempt: int = 1) -> Record:
    """Return the start of a turn."""
    return "turn/start", {"turn": turn, "claimed": list(claimed), "attempt": attempt}


def end(turn: int, outcome: str = "completed", *, redeliver: bool = False) -> Record:
    """Return the end of a turn."""
    return "turn/end", {"turn": turn, "outcome": outcome} | ({"redeliver": True} if redeliver else {})


def create(identity: str, target: int, **fields: Any) -> Record:
    """Return the creation of a reminder; a one-shot unless it is given `everySeconds`."""
    kind = "every" if "everySeconds" in fields else "after" if "afterSeconds" in fields else "at"
    record = {"id": identity, "kind": kind, "prompt": "tea", **fields, "scheduledAt": text_of(target)}
    return "schedule/change", {"version": 1, "operation": "create", "schedule": record}


def delete(identity: str) -> Record:
    """Return the deletion of a reminder."""
    return "schedule/change", {"version": 1, "operation": "delete", "id": identity}


def dispatch(identity: str, accepted: int | None = None) -> Record:
    """Return the dispatch of a reminder; `accepted` is for those that recur."""
    more = {} if accepted is None else {"acceptedAt": text_of(accepted)}
    return "schedule/change", {"version": 1, "operation": "dispatch", "id": identity, **more}


def reminder_text(*reminders: tuple[str, int], prompt: str = "tea") -> str:
    """Return the message that delivers these reminders for these occurrences."""
    if len(reminders) == 1:
        ((identity, occurrence),) = reminders
        lines: tuple[str, ...] = (
            "[SCHEDULE REMINDER]",
            "Present it.",
            f"schedule_id_json: {json.dumps(identity)}",
            f"occurrence_at: {text_of(occurrence)}",
            f"reminder_prompt_json: {json.dumps(prompt)}",
        )
    else:
        items = [
            {"schedule_id": identity, "occurrence_at": text_of(occurrence), "reminder_prompt": prompt}
            for identity, occurrence in reminders
        ]
        lines = ("[SCHEDULE REMINDER BATCH]", "Present them.", f"reminders_json: {json.dumps(items)}")
    return "\n".join(lines)


@contextlib.contextmanager
def breaks(name: str, text: str = "") -> Generator[None]:
    """Check that the block breaks the invariant of that name, with that in its words."""
    with pytest.raises(Broken) as caught:
        yield
    assert caught.value.invariant == name, caught.value
    assert text in caught.value.text
