from __future__ import annotations

from typing import Any

from tests.lab.look.traces import MIDNIGHT, Teller, at, created, deleted, dispatched, every_kind, inserted
from whenidle_lab.reading import Ending, SpanKind, read
from whenidle_lab.trace import What
from whenidle_protocol.rules.interval import EveryRule
from whenidle_protocol.task_codec import encode_task
from whenidle_protocol.task_record import LastDelivery, Target, TargetKind, Task, TaskStatus

# Spans -------------------------------------------------------------------------------------------


def test_each_end_finds_its_beginning() -> None:
    """Calls of one agent that overlap are told apart by their numbers."""
    teller = Teller()
    first = teller.tell(What.CALL_BEGAN, "ada", call=0, tool="one")
    second = teller.tell(What.CALL_BEGAN, "ada", call=1, tool="two")
    end = teller.tell(What.CALL_ENDED, "ada", call=0, answer={})
    last = teller.tell(What.CALL_ENDED, "ada", call=1, answer={"code": "no"})
    one, two = teller.reading().spans
    assert (one.begin, one.end, one.title, one.ending) == (first, end, "one", Ending.WELL)
    assert (two.begin, two.end, two.title, two.ending) == (second, last, "two", Ending.BADLY)


def test_what_is_open_when_its_process_ends_is_cut_there() -> None:
    """A crash cuts what runs, and the next life knows nothing of it; an end without a beginning is no span."""
    teller = Teller()
    teller.tell(What.LIFE_BEGAN, down=0.0)
    teller.tell(What.TURN_BEGAN, "ada", turn=1, attempt=1)
    crash = teller.tell(What.LIFE_ENDED, how="crashed")
    teller.tell(What.LIFE_BEGAN, down=1.0)
    teller.tell(What.TURN_ENDED, "ada", turn=1, how="returned", error=None)
    last = teller.tell(What.TURN_BEGAN, "ada", turn=1, attempt=2)
    spans = [(one.kind, one.end, one.ending, one.title) for one in teller.reading().spans]
    assert spans == [
        (SpanKind.LIFE, crash, Ending.BADLY, "life 1, crashed"),
        (SpanKind.TURN, crash, Ending.CUT, "turn 1"),
        (SpanKind.LIFE, last, Ending.BADLY, "life 1"),
        (SpanKind.TURN, last, Ending.CUT, "turn 1, attempt 2"),
    ]


def test_a_host_that_is_stopped_ends_its_life_well() -> None:
    """Lives that finish, or whose hosts are stopped in order, end well; others do not."""
    teller = Teller()
    for how in ("finished", "stopped", "failed"):
        teller.tell(What.LIFE_BEGAN, down=0.0)
        teller.tell(What.LIFE_ENDED, how=how)
    assert [one.ending for one in teller.reading().spans] == [Ending.WELL, Ending.WELL, Ending.BADLY]


def test_a_commit_knows_where_it_became_durable() -> None:
    """A commit has a position of durability, or none; a fate that is not quiet is a bad ending."""
    teller = Teller()
    durable = teller.commit("ada", inserted("m1"))
    teller.tell(What.COMMIT_BEGAN, commit=7)
    teller.tell(What.COMMIT_ENDED, commit=7, fate="lost", error=None)
    kept, lost = teller.reading().spans
    assert (kept.durable, kept.ending, lost.durable, lost.ending) == (durable, Ending.WELL, None, Ending.BADLY)


def test_a_delivery_claims_its_agent() -> None:
    """The claims of the host's own are maintenance; one that a scenario's maintenance runs in is told once."""
    teller = Teller()
    teller.tell(What.HOST, "ada", event="maintenance-started")
    teller.tell(What.HOST, "ada", event="maintenance-ended", outcome="completed")
    teller.tell(What.HOST, "ada", event="maintenance-ended", outcome="completed")
    teller.tell(What.HOST, "ada", event="maintenance-started")
    teller.tell(What.MAINTENANCE_BEGAN, "ada", claim=1)
    teller.tell(What.MAINTENANCE_ENDED, "ada", claim=1, how="cancelled", error=None)
    teller.tell(What.HOST, "ada", event="maintenance-ended", outcome="aborted")
    teller.tell(What.HOST, "bob", event="maintenance-started")
    teller.tell(What.HOST, "bob", event="maintenance-ended", outcome="error")
    assert [(one.agent, one.title, one.ending) for one in teller.reading().spans] == [
        ("ada", "claim", Ending.WELL),
        ("ada", "maintenance", Ending.BADLY),
        ("bob", "claim", Ending.BADLY),
    ]


# Occurrences -------------------------------------------------------------------------------------


def test_an_occurrence_joins_its_instant_with_its_admission() -> None:
    """It lies where the wall first showed its instant, between two happenings, and knows how late it was."""
    teller = Teller()
    planned = teller.commit("ada", created("schedule-1", 5))
    before = teller.tell(What.NOTE, text="just before")
    teller.millis = 10_000
    admitted = teller.commit("ada", inserted("m1"), dispatched("schedule-1"))
    (one,) = teller.reading().occurrences
    assert (one.agent, one.source, one.prompt, one.planned, one.admitted) == (
        "ada",
        "schedule-1",
        "tea",
        planned,
        admitted,
    )
    assert (one.due_millis, one.due, one.late_millis) == (MIDNIGHT + 5_000, before + 0.5, 5_000)


def test_a_step_of_the_clock_makes_due_where_it_happens() -> None:
    """An instant that the wall jumps over comes due at the step, and one that it passed while it was down there."""
    teller = Teller()
    teller.commit("ada", created("schedule-1", 5), created("schedule-2", 40))
    teller.ahead = 20_000
    step = teller.tell(What.CLOCK, how="step", by=20.0, announced=True)
    teller.tell(What.LIFE_ENDED, how="crashed")
    teller.ahead = 60_000
    birth = teller.tell(What.LIFE_BEGAN, down=40.0)
    assert [one.due for one in teller.reading().occurrences] == [step, birth - 0.5]


def test_what_is_admitted_too_early_is_seen() -> None:
    """An admission before its instant is negative in lateness, and has no position at which it was due."""
    teller = Teller()
    teller.commit("ada", created("schedule-1", 5))
    teller.commit("ada", dispatched("schedule-1"))
    (one,) = teller.reading().occurrences
    assert (one.due, one.late_millis) == (None, -5_000)


def test_an_every_reminder_has_an_occurrence_for_each_delivery() -> None:
    """A delivery stands for the latest that was due and those that were missed; the next one is planned then."""
    teller = Teller()
    teller.commit("ada", created("schedule-1", 300, every=300))
    teller.millis = 1_000_000
    teller.commit("ada", dispatched("schedule-1", accepted=1_000))
    found = [(one.due_millis - MIDNIGHT, one.missed, one.admitted is None) for one in teller.reading().occurrences]
    assert found == [(900_000, 2, False), (1_200_000, 0, True)]


def test_a_deleted_reminder_is_dropped() -> None:
    """A reminder that is deleted is dropped there; dispatches of what is not known say nothing."""
    teller = Teller()
    teller.commit("ada", created("schedule-1", 5))
    dropped = teller.commit("ada", deleted("schedule-1"), dispatched("schedule-1"))
    (one,) = teller.reading().occurrences
    assert (one.dropped, one.admitted) == (dropped, None)


def test_a_fork_owns_nothing_of_what_it_inherited() -> None:
    """What a fork begins with plans nothing and waits in no inbox; what comes after does."""
    teller = Teller()
    teller.commit("fork", created("schedule-1", 5), inserted("m1"), inserted("m2"), created=["fork"], seeds={"fork": 2})
    reading = teller.reading()
    assert (reading.occurrences, reading.inboxes) == ((), {"fork": [(1, 1)]})


def test_what_cannot_be_read_is_passed_over() -> None:
    """A log that a broken runtime wrote does not keep anybody from looking at the rest."""
    teller = Teller()
    broken = {"type": "schedule/change", "at": 0, "data": "{"}
    strange = {"type": "schedule/change", "at": 0, "data": "[]"}
    odd = {"type": "inbox/insert", "at": 0, "data": "[]"}
    appends = [{"session": "ada", "expected": 0, "records": [broken, strange, odd]}]
    teller.tell(What.COMMIT_DURABLE, commit=0, appends=appends, tasks=[{"id": "t", "expected": None, "task": "{}"}])
    reading = teller.reading()
    assert (reading.occurrences, reading.inboxes, reading.agents) == ((), {}, ("ada",))


def _task(seconds: int, *, deliveries: int = 0, missed: int = 0, active: bool = True) -> dict[str, Any]:
    """Return the write of a task due so many seconds after midnight, delivered so often a minute before that."""
    last = LastDelivery(at(seconds - 60), at(seconds - 50), "bob")
    task = Task(
        "task-1",
        "Report",
        "Write it.",
        EveryRule(60, at(0)),
        Target(TargetKind.NEW),
        TaskStatus.ACTIVE if active else TaskStatus.PAUSED,
        at(seconds),
        at(0),
        at(0),
        "",
        deliveries=deliveries,
        missed=missed,
        last_delivery=last if deliveries else None,
    )
    return {"id": "task-1", "expected": None, "task": encode_task(task)}


def test_a_task_has_an_occurrence_for_each_delivery() -> None:
    """Tasks are read from their rows: planned, delivered to a session, planned anew, dropped when they are paused."""
    teller = Teller()
    planned = teller.commit("", tasks=[_task(60)])
    teller.millis = 70_000
    admitted = teller.commit("bob", inserted("m1"), tasks=[_task(120, deliveries=1, missed=1)])
    paused = teller.commit("", tasks=[_task(120, deliveries=1, missed=1, active=False)])
    first, second = teller.reading().occurrences
    assert (first.agent, first.source, first.prompt, first.planned) == ("bob", "task-1", "Report", planned)
    assert (first.admitted, first.missed, first.late_millis) == (admitted, 1, 10_000)
    assert (second.agent, second.planned, second.dropped) == ("", admitted, paused)


def test_a_task_run_by_hand_keeps_what_is_planned() -> None:
    """A delivery that does not move the task leaves its next occurrence planned where it was; a deletion drops it."""
    teller = Teller()
    planned = teller.commit("", tasks=[_task(120)])
    admitted = teller.commit("bob", tasks=[_task(120, deliveries=1)])
    dropped = teller.commit("", tasks=[{"id": "task-1", "expected": 1, "task": None}])
    by_hand, next_one = teller.reading().occurrences
    assert (by_hand.due_millis, by_hand.admitted) == (MIDNIGHT + 60_000, admitted)
    assert (next_one.planned, next_one.dropped) == (planned, dropped)


def test_a_task_delivered_at_its_first_sight_is_admitted() -> None:
    """A trace that begins in the middle shows a delivery without a plan."""
    teller = Teller()
    admitted = teller.commit("bob", tasks=[_task(120, deliveries=1)])
    first, second = teller.reading().occurrences
    assert (first.admitted, second.admitted) == (admitted, None)


# Curves ------------------------------------------------------------------------------------------


def test_an_inbox_holds_what_was_not_taken() -> None:
    """Messages wait from insertion to turn, removal or abort, and again if their turn is to be redelivered."""
    teller = Teller()
    teller.commit("ada", inserted("m1"), inserted("m2"), inserted("m3"), inserted("m4"))
    teller.commit("ada", ("turn/start", {"turn": 1, "claimed": ["m1"], "attempt": 1}))
    teller.commit("ada", ("turn/claim", {"turn": 1, "ids": ["m2"]}), ("inbox/remove", {"ids": ["m3"]}))
    teller.commit("ada", ("turn/end", {"turn": 1, "outcome": "interrupted", "redeliver": True}))
    teller.commit("ada", ("turn/start", {"turn": 2, "claimed": ["m1", "m2"], "attempt": 2}))
    teller.commit("ada", ("turn/abort", {"turn": 2, "cause": "x", "removed": ["m4"]}))
    teller.commit("ada", ("turn/end", {"turn": 2, "outcome": "aborted", "cause": "x"}))
    assert [value for _, value in teller.reading().inboxes["ada"]] == [4, 3, 1, 3, 1, 0]


def test_a_mailbox_is_empty_once_its_process_is_gone() -> None:
    """What was in a mailbox, in memory, dies with its process."""
    teller = Teller()
    first = teller.tell(What.DEPTH, "ada", depth=3)
    end = teller.tell(What.LIFE_ENDED, how="crashed")
    assert teller.reading().mailboxes == {"ada": [(first, 3), (end, 0)]}


def test_the_wall_is_measured_against_monotonic_time() -> None:
    """The offset changes with each step and drift, and while no process lives, but not as time just passes."""
    teller = Teller()
    teller.tell(What.NOTE, text="")
    teller.millis = 5_000
    teller.tell(What.NOTE, text="")
    teller.ahead = -2_000
    step = teller.tell(What.CLOCK, how="step", by=-2.0, announced=True)
    assert teller.reading().offsets == [(0, 0), (step, -2_000)]


def test_a_reading_knows_where_it_broke() -> None:
    """The position of the break is known, or that there is none; an empty trace can be read."""
    happenings = every_kind().trace.happenings
    reading = read(happenings)
    assert reading.broken is not None
    assert happenings[reading.broken].what is What.BROKEN
    assert (read([]).broken, read([]).spans) == (None, ())
