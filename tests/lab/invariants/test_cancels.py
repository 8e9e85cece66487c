from __future__ import annotations

import pytest

from whenidle_lab.trace import What

from .tales import Tale, breaks, start

NAME = "cancels-as-told"


def running() -> Tale:
    """Return the tale of an agent in a turn, with two more messages in its inbox."""
    tale = Tale()
    tale.agent()
    for number in range(3):
        tale.send(f"m{number}")
    tale.commit("ada", start(1, ["m0"]))
    tale.enter()
    return tale


def cancel(tale: Tale, removed: list[str], *told: bool, cause: str = "enough") -> None:
    """Let the turn be cancelled by as many as were told to keep the inbox or not, and one record of it be written."""
    for number, keeps in enumerate(told):
        tale.tell(What.CANCEL, "ada", cancel=number, cause=cause, keep_inbox=keeps)
    tale.commit("ada", ("turn/abort", {"turn": 1, "cause": "enough", "removed": removed}))
    for number in range(len(told)):
        tale.tell(What.CANCEL_ENDED, "ada", cancel=number, error=None)


@pytest.mark.parametrize(("keeps", "removed"), [(True, []), (False, ["m1", "m2"])])
def test_a_cancel_keeps_all_or_removes_all(removed: list[str], *, keeps: bool) -> None:
    """As it was told to."""
    cancel(running(), removed, keeps)


def test_a_cancel_that_removes_what_it_should_keep_is_noticed() -> None:
    """Be it one message."""
    with breaks(NAME, "keeps the inbox has removed ['m1']"):
        cancel(running(), ["m1"], True)


def test_a_cancel_that_leaves_what_it_should_remove_is_noticed() -> None:
    """Be it one message."""
    with breaks(NAME, "empties the inbox has removed ['m1'] of ['m1', 'm2']"):
        cancel(running(), ["m1"], False)


def test_an_inbox_that_is_emptied_without_a_turn_is_judged_too() -> None:
    """A cancel of a maintenance task that keeps the inbox does not take two messages from it."""
    tale = Tale()
    tale.agent()
    for number in range(2):
        tale.send(f"m{number}", how="inject")
    tale.tell(What.CANCEL, "ada", cancel=1, cause="enough", keep_inbox=True)
    with breaks(NAME, "has removed ['m0', 'm1']"):
        tale.commit("ada", ("inbox/remove", {"ids": ["m0", "m1"]}))


def test_users_remove_one_message_at_a_time() -> None:
    """That says nothing about a cancel that is in flight."""
    tale = running()
    tale.tell(What.CANCEL, "ada", cancel=1, cause="enough", keep_inbox=True)
    tale.commit("ada", ("inbox/remove", {"ids": ["m1"]}))


def test_nothing_is_said_where_it_is_not_known_whose_record_it_is() -> None:
    """Of two cancels of one cause that were told differently, of one unknown to the world, of another life."""
    cancel(running(), ["m1", "m2"], True, False)
    cancel(running(), ["m1"])
    cancel(running(), ["m1"], True, cause="another")
    tale = running()
    tale.tell(What.CANCEL, "ada", cancel=1, cause="enough", keep_inbox=True)
    tale.die()
    tale.life()
    cancel(tale, ["m1"])
