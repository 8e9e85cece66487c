from __future__ import annotations

import pytest

from whenidle_lab.trace import What

from .tales import START, Tale, breaks, create, delete, dispatch, end, insert, start
from .task_tales import daily, deletion, row, write

NAME = "log-well-formed"


def test_a_life_of_all_events_is_well_formed() -> None:
    """Inserting, replacing, removing, taking, noting, cancelling and scheduling may follow one another."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", insert("m0"), insert("m1", lane="next-step"), insert("m2", wake=False))
    tale.commit("ada", ("inbox/replace", {"id": "m2", "text": "other"}))
    tale.commit("ada", ("inbox/remove", {"ids": ["m2"]}))
    tale.commit("ada", start(1, ["m1", "m0"]))
    tale.enter(1, ["m1", "m0"])
    tale.commit("ada", insert("m3", lane="next-step"))
    tale.commit("ada", ("turn/claim", {"turn": 1, "ids": ["m3"]}), ("turn/note", {"turn": 1, "data": 7}))
    tale.commit("ada", insert("m4"))
    tale.commit("ada", ("turn/abort", {"turn": 1, "cause": "stop", "removed": ["m4"]}))
    tale.leave(1, "cancelled")
    tale.commit("ada", end(1, "aborted"))
    tale.commit("ada", create("schedule-1", START + 60_000, afterSeconds=60), delete("schedule-1"))
    tale.commit("ada", ("something/else", {"unknown": True}), insert("m0"))
    tale.commit(created=["eve"], seeds={"eve": 2})
    tale.judge()


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([insert("m0")], "not done with"),
        ([insert("m1", lane="sideways")], "no lane"),
        ([("inbox/remove", {"ids": ["m1"]})], "is pending"),
        ([("inbox/replace", {"id": "m1", "text": ""})], "is pending"),
        ([start(2, ["m0"])], "follows turn 0"),
        ([start(1, ["m1"])], "is pending"),
        ([start(1, ["m0"]), start(2, [])], "while turn 1 is open"),
        ([start(1, ["m0"]), insert("m0")], "not done with"),
        ([end(1)], "not open"),
        ([start(1, ["m0"]), end(1), end(1)], "not open"),
        ([start(1, ["m0"]), end(2)], "not open"),
        ([start(1, ["m0"]), end(1, "vanished")], "no outcome"),
        ([start(1, ["m0"]), end(1, redeliver=True)], "is to be redelivered"),
        ([start(1, ["m0"]), end(1, "interrupted", redeliver=True), insert("m0")], "not done with"),
        ([start(1, ["m0"]), ("turn/abort", {"turn": 1, "cause": "", "removed": []}), end(1)], "was cancelled"),
        ([("turn/note", {"turn": 1, "data": None})], "not open"),
        ([("turn/claim", {"turn": 1, "ids": []})], "not open"),
        ([("inbox/remove", {})], "another form"),
        ([("inbox/remove", 7)], "another form"),
        ([create("s", START), create("s", START)], "used twice"),
        ([create("s", START), delete("s"), create("s", START)], "used twice"),
        ([delete("s")], "not active"),
        ([dispatch("s")], "not active"),
        ([create("s", START), dispatch("s", START)], "unlike its kind"),
        ([create("s", START + 1, everySeconds=300), dispatch("s", START)], "before it was due"),
        ([create("s", START, everySeconds=300), dispatch("s")], "unlike its kind"),
        ([create("s", START, everySeconds=0)], "has a period"),
        ([("schedule/change", {"version": 2})], "version 2"),
        ([create("s", START), ("schedule/change", {"version": 1, "operation": "forget", "id": "s"})], "no operation"),
    ],
)
def test_what_cannot_follow_is_noticed(records: list[tuple[str, object]], why: str) -> None:
    """An event that cannot follow what came before breaks the form of the log."""
    tale = Tale()
    tale.agent()
    tale.commit("ada", insert("m0"))
    with breaks(NAME, why):
        tale.commit("ada", *records)


def test_events_are_numbered_without_gaps() -> None:
    """An append must expect the number of events that there are."""
    tale = Tale()
    tale.agent()
    with breaks(NAME, "numbered 1"):
        tale.commit("ada", insert("m0"), expected=1)


def test_events_need_a_session() -> None:
    """Nothing is appended to a session that was not created."""
    tale = Tale()
    tale.agent("ada")
    tale.states["eve"] = tale.states["ada"]
    with breaks(NAME, "does not exist"):
        tale.commit("eve", insert("m0"))


def test_a_session_is_created_once() -> None:
    """The same session is not created a second time."""
    tale = Tale()
    tale.agent()
    with breaks(NAME, "created twice"):
        tale.commit(created=["ada"])


def test_a_reminder_ends_with_the_year_9999() -> None:
    """An interval whose next target would lie in the year 10000 is over with the last one before it."""
    tale = Tale()
    tale.agent()
    last = 253_402_300_799_999
    tale.wall = last
    tale.life()
    tale.announce("agent-started")
    tale.commit("ada", create("s", last, everySeconds=300))
    tale.deliver("m1", ("s", last), accepted=last)
    with breaks(NAME, "not active"):
        tale.commit("ada", delete("s"))


def test_a_fork_owns_nothing_of_what_it_inherits() -> None:
    """Copied events count turns, and neither own messages nor reminders nor have them delivered again."""
    tale = Tale()
    tale.agent()
    copied = [insert("m0"), start(1, ["m0"]), end(1), create("s", START + 9_000, afterSeconds=9)]
    tale.commit("eve", *copied, created=["eve"], seeds={"eve": 4}, index=(None, False))
    tale.announce("agent-started", "eve")
    tale.commit("eve", insert("m0"))
    tale.commit("eve", start(2, ["m0"]))
    with breaks(NAME, "not active"):
        tale.commit("eve", delete("s"))


@pytest.mark.parametrize("index", [(None, False), (START + 1, True), (START + 60_000, False)])
def test_the_index_agrees_with_the_log(index: tuple[int | None, bool]) -> None:
    """What a store is told of a session, its earliest target and whether it is to run, follows from its log."""
    tale = Tale()
    tale.agent()
    records = create("s", START + 60_000, afterSeconds=60), insert("m0")
    with breaks(NAME, "the store is told"):
        tale.commit("ada", *records, index=index)


def test_versions_of_tasks_follow_one_another() -> None:
    """A task is written as of the version it has, and each write raises it."""
    tale = Tale()
    task = row("task-1", daily(9))
    tale.commit(tasks=[write(None, task)])
    with breaks(NAME, "as of version 7"):
        tale.commit(tasks=[write(7, task)])
    tale = Tale()
    tale.commit(tasks=[write(None, task)])
    with breaks(NAME, "does not follow"):
        tale.commit(tasks=[write(task["version"], task)])


def test_columns_of_tasks_agree_with_their_data() -> None:
    """What a store is told of a task beside its text is what the text says."""
    tale = Tale()
    with breaks(NAME, "the task itself says"):
        tale.commit(tasks=[write(None, row("task-1", daily(9)) | {"next": None})])


def test_a_receipt_needs_a_task() -> None:
    """There is no receipt of a task that does not exist."""
    tale = Tale()
    with breaks(NAME, "does not exist"):
        tale.commit(receipts=[{"task": "task-1", "scheduled": 0, "delivered": 0, "data": "{}"}])


def test_a_deleted_task_is_gone() -> None:
    """After its deletion a task has no version."""
    tale = Tale()
    task = row("task-1", daily(9))
    tale.commit(tasks=[write(None, task)])
    tale.commit(tasks=[deletion(task)])
    with breaks(NAME, "as of version"):
        tale.commit(tasks=[write(task["version"], task)])


def test_a_failed_read_is_entered_in_the_books() -> None:
    """After a read has failed an answer may say that something could not be confirmed."""
    tale = Tale()
    tale.agent()
    tale.tell(What.READ_FAILED, error="CommitUncertain")
    call = tale.call("schedule_list", {})
    tale.answer(call, {"code": "persistence_uncertain", "message": "…", "operation": "list"})
