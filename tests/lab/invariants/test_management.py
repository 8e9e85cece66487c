from __future__ import annotations

from typing import Any

import pytest

from whenidle_lab.trace import What

from .tales import START, Tale, breaks, create, delete, text_of

NAME = "answers-agree"
TEA = {"prompt": "tea", "after_seconds": 60}


def item(identity: str = "s", target: int = START + 60_000, state: str = "scheduled", **fields: Any) -> dict[str, Any]:
    """Return a reminder as answers show it."""
    timing = fields or {"kind": "after", "afterSeconds": 60}
    record = {"id": identity, "prompt": "tea", "scheduledAt": text_of(target), **timing}
    return {**record, "state": state, "deliveryMode": "session-local"}


def agent() -> Tale:
    """Return the tale of an agent."""
    tale = Tale()
    tale.agent()
    return tale


def reminded() -> Tale:
    """Return the tale of an agent with the reminder s."""
    tale = agent()
    tale.commit("ada", create("s", START + 60_000, afterSeconds=60))
    return tale


# Creating -------------------------------------------------------------------------------------


def test_what_was_created_is_answered() -> None:
    """The answer is the record that the call has put into the log, counted from when it was handed in."""
    tale = agent()
    call = tale.call("schedule_create", TEA)
    tale.wait(1)
    tale.commit("ada", create("s", START + 61_000, afterSeconds=60))
    tale.wait(1)
    tale.answer(call, item(target=START + 61_000))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (item("other"), "no such reminder"),
        (item(target=START + 60_001), "what was created is"),
        (item() | {"prompt": "coffee"}, "what was created is"),
        (item(state="overdue"), "what was created is"),
    ],
)
def test_another_record_than_the_one_in_the_log_is_noticed(answer: dict[str, Any], why: str) -> None:
    """Each field is that of the log."""
    tale = agent()
    call = tale.call("schedule_create", TEA)
    tale.commit("ada", create("s", START + 60_000, afterSeconds=60))
    with breaks(NAME, why):
        tale.answer(call, answer)


def test_what_was_there_before_was_not_created() -> None:
    """A record from before the call is not the call's."""
    tale = reminded()
    with breaks(NAME, "no such reminder"):
        tale.answer(tale.call("schedule_create", TEA), item())


def test_two_calls_create_two_reminders() -> None:
    """One record does not answer two calls."""
    tale = agent()
    calls = [tale.call("schedule_create", TEA) for _ in range(2)]
    tale.commit("ada", create("s", START + 60_000, afterSeconds=60))
    tale.answer(calls[0], item())
    with breaks(NAME, "another call has created it"):
        tale.answer(calls[1], item())


def test_another_prompt_than_was_asked_for_is_noticed() -> None:
    """What is created is what the call asked for."""
    tale = agent()
    call = tale.call("schedule_create", TEA | {"prompt": "coffee"})
    tale.commit("ada", create("s", START + 60_000, afterSeconds=60))
    with breaks(NAME, "another prompt"):
        tale.answer(call, item())


def test_a_target_that_counts_from_another_time_is_noticed() -> None:
    """A while is counted from a time that the wall showed during the call."""
    tale = agent()
    call = tale.call("schedule_create", TEA)
    tale.commit("ada", create("s", START + 59_999, afterSeconds=60))
    with breaks(NAME, "it counts from"):
        tale.answer(call, item(target=START + 59_999))


def test_an_instant_lies_in_the_future() -> None:
    """An `at` that was not in the future when it was made is noticed; one that has passed since is none."""
    for target, is_right in ((START + 500, True), (START, False)):
        tale = agent()
        call = tale.call("schedule_create", {"prompt": "tea", "at": "…"})
        tale.commit("ada", create("s", target))
        tale.wait(1)
        answer = item(target=target, kind="at")
        if is_right:
            tale.answer(call, answer)
        else:
            with breaks(NAME, "not in the future"):
                tale.answer(call, answer)


# Deleting -------------------------------------------------------------------------------------


def test_what_was_deleted_is_answered() -> None:
    """A deletion is in the log, of that call alone; an id that is not active is not found."""
    tale = reminded()
    calls = [tale.call("schedule_delete", {"id": "s"}) for _ in range(3)]
    tale.commit("ada", delete("s"))
    tale.answer(calls[0], {"id": "s", "deleted": True})
    tale.answer(calls[1], {"id": "s", "deleted": False, "code": "schedule_not_found"})
    with breaks(NAME, "another call has deleted it"):
        tale.answer(calls[2], {"id": "s", "deleted": True})


def test_a_deletion_that_is_not_in_the_log_is_noticed() -> None:
    """Neither now nor before may it be answered that something was deleted."""
    tale = reminded()
    call = tale.call("schedule_delete", {"id": "s"})
    with breaks(NAME, "it was not deleted meanwhile"):
        tale.answer(call, {"id": "s", "deleted": True})


def test_what_is_active_is_found() -> None:
    """A reminder that was active all the time is not answered as not found."""
    tale = reminded()
    call = tale.call("schedule_delete", {"id": "s"})
    with breaks(NAME, "active all the time"):
        tale.answer(call, {"id": "s", "deleted": False, "code": "schedule_not_found"})


def test_what_is_delivered_meanwhile_may_not_be_found() -> None:
    """At one moment of the call it was not active."""
    tale = reminded()
    tale.wait(60)
    call = tale.call("schedule_delete", {"id": "s"})
    tale.deliver("m1", ("s", START + 60_000))
    tale.answer(call, {"id": "s", "deleted": False, "code": "schedule_not_found"})


# Listing --------------------------------------------------------------------------------------


def test_a_list_is_what_was_active_at_some_moment() -> None:
    """Before or after what changed while the call was in flight, and nothing in between or else."""
    tale = reminded()
    calls = [tale.call("schedule_list", {}) for _ in range(3)]
    tale.commit("ada", create("t", START + 60_000, afterSeconds=60))
    tale.commit("ada", delete("s"))
    for call, shown in zip(calls, ([item("s")], [item("s"), item("t")], [item("t")]), strict=True):
        tale.answer(call, shown)
    call = tale.call("schedule_list", {})
    with breaks(NAME, "active were"):
        tale.answer(call, [item("s"), item("t")])


def test_a_list_is_in_the_order_of_creation() -> None:
    """Another order is noticed; a recurring reminder keeps its place when it is delivered."""
    tale = agent()
    recurs: dict[str, Any] = {"kind": "every", "everySeconds": 300}
    tale.commit("ada", create("e", START + 300_000, everySeconds=300))
    tale.commit("ada", create("s", START + 600_000, afterSeconds=600))
    tale.wait(300)
    tale.deliver("m1", ("e", START + 300_000), accepted=tale.wall)
    once = item("s", START + 600_000, kind="after", afterSeconds=600)
    tale.answer(tale.call("schedule_list", {}), [item("e", START + 600_000, **recurs), once])
    with breaks(NAME, "active were"):
        tale.answer(tale.call("schedule_list", {}), [once, item("e", START + 600_000, **recurs)])


def test_states_are_told_by_one_reading_of_the_wall() -> None:
    """What is overdue and what is scheduled fits one time that the wall showed during the call."""
    tale = agent()
    tale.commit("ada", create("s", START + 60_000, afterSeconds=60))
    tale.commit("ada", create("t", START + 60_000, afterSeconds=60))
    early, late, both = (tale.call("schedule_list", {}) for _ in range(3))
    tale.wait(60)
    tale.answer(early, [item("s"), item("t")])
    tale.answer(late, [item("s", state="overdue"), item("t", state="overdue")])
    with breaks(NAME, "the states hold between"):
        tale.answer(both, [item("s", state="overdue"), item("t")])


def test_a_state_that_the_wall_did_not_show_is_noticed() -> None:
    """A reminder is not overdue before its target."""
    tale = reminded()
    call = tale.call("schedule_list", {})
    tale.wait(59)
    with breaks(NAME, "the wall showed"):
        tale.answer(call, [item(state="overdue")])


# Refusals -------------------------------------------------------------------------------------


def refused(code: str) -> dict[str, str]:
    """Return a refusal."""
    return {"code": code, "message": "…"}


@pytest.mark.parametrize("code", ["persistence_uncertain", "internal_error", "corrupt_schedule_log"])
def test_a_doubt_without_a_reason_is_noticed(code: str) -> None:
    """Where nothing has failed nothing is uncertain."""
    tale = agent()
    with breaks(NAME):
        tale.answer(tale.call("schedule_list", {}), refused(code))


def test_a_doubt_after_a_failure_is_an_answer() -> None:
    """A commit that failed, or an actor that was restarted, is reason enough; a corrupt log would be another."""
    tale = agent()
    tale.announce("agent-restarted")
    tale.answer(tale.call("schedule_list", {}), refused("internal_error"))
    tale = agent()
    number = tale.hand_in()
    tale.tell(What.COMMIT_ENDED, commit=number, fate="refused", error="StoreFull")
    tale.answer(tale.call("schedule_list", {}), refused("persistence_uncertain"))
    with breaks(NAME, "the log is sound"):
        tale.answer(tale.call("schedule_list", {}), refused("corrupt_schedule_log"))


def test_a_refusal_is_not_judged() -> None:
    """What the caller did wrong is the caller's business."""
    tale = agent()
    tale.answer(tale.call("schedule_create", {}), refused("invalid_prompt"))


def test_what_has_no_answer_is_not_judged() -> None:
    """A call that raised, one of a dead process, and what is no tool."""
    tale = reminded()
    tale.tell(What.CALL_ENDED, "ada", call=tale.call("schedule_list", {}), error="AgentDisposed")
    call = tale.call("schedule_list", {})
    tale.die()
    tale.life()
    tale.answer(call, [item("never")])
    tale.answer(tale.call("run", {"id": "task-1"}), {"id": "task-1"})
    tale.answer(tale.call("schedule_list", {}, agent="nobody"), [])
