from __future__ import annotations

from .tales import START, Tale, breaks, create, delete, dispatch, insert, reminder_text

NAME = "as-planned"
FIVE = 300_000


def with_reminders(*targets: int, every: int = 0) -> Tale:
    """Return the tale of an agent with reminders s0, s1, ... due so many seconds from the start."""
    tale = Tale()
    tale.agent()
    for number, target in enumerate(targets):
        fields = {"everySeconds": every} if every else {"afterSeconds": target}
        tale.commit("ada", create(f"s{number}", START + target * 1000, **fields))
    return tale


def test_missed_intervals_are_one_occurrence() -> None:
    """After a long time the latest occurrence is delivered, and the next is the first in the future."""
    tale = with_reminders(300, every=300)
    tale.wait(1000)
    tale.deliver("m1", ("s0", START + 3 * FIVE), accepted=tale.wall)
    tale.wait(200)
    tale.deliver("m2", ("s0", START + 4 * FIVE), accepted=tale.wall)


def test_an_earlier_occurrence_than_the_latest_is_noticed() -> None:
    """Of several missed occurrences the latest counts."""
    tale = with_reminders(300, every=300)
    tale.wait(1000)
    with breaks(NAME, "the latest one due is"):
        tale.deliver("m1", ("s0", START + 2 * FIVE), accepted=tale.wall)


def test_a_one_shot_is_delivered_for_its_target() -> None:
    """The occurrence of a one-shot is its target, however late it is delivered."""
    tale = with_reminders(10)
    tale.wait(100)
    with breaks(NAME):
        tale.deliver("m1", ("s0", START + 100_000))


def test_one_shots_come_in_the_order_of_their_targets() -> None:
    """Of two one-shots that are due the earlier goes first, of two equal ones that which was created first."""
    tale = with_reminders(20, 10, 10)
    tale.wait(30)
    tale.deliver("m1", ("s1", START + 10_000))
    tale.deliver("m2", ("s2", START + 10_000))
    tale.deliver("m3", ("s0", START + 20_000))
    tale = with_reminders(20, 10, 10)
    tale.wait(30)
    with breaks(NAME, "before ['s1']"):
        tale.deliver("m1", ("s2", START + 10_000))


def test_one_shots_come_alone() -> None:
    """Two one-shots are not delivered together."""
    tale = with_reminders(10, 20)
    tale.wait(30)
    tale.claim()
    with breaks(NAME, "together"):
        tale.commit(
            "ada",
            insert("m1", reminder_text(("s0", START + 10_000)), source="schedule"),
            dispatch("s0"),
            insert("m2", reminder_text(("s1", START + 20_000)), source="schedule"),
            dispatch("s1"),
        )


def test_all_that_recurs_comes_together() -> None:
    """What recurs and is due is one message, in the order of targets."""
    tale = with_reminders(301, 300, every=300)
    tale.wait(310)
    tale.deliver("m1", ("s1", START + FIVE), ("s0", START + FIVE + 1000), accepted=tale.wall)


def test_what_recurs_in_another_order_is_noticed() -> None:
    """A batch is in the order of targets."""
    tale = with_reminders(301, 300, every=300)
    tale.wait(310)
    with breaks(NAME, "another order"):
        tale.deliver("m1", ("s0", START + FIVE + 1000), ("s1", START + FIVE), accepted=tale.wall)


def test_what_recurs_and_is_left_out_is_noticed() -> None:
    """A batch has everything that is due when it is accepted; what is not due yet is not missed."""
    tale = with_reminders(300, 311, every=300)
    tale.wait(310)
    tale.deliver("m1", ("s0", START + FIVE), accepted=tale.wall)
    tale = with_reminders(300, 310, every=300)
    tale.wait(310)
    with breaks(NAME, "['s1'] are due too"):
        tale.deliver("m1", ("s0", START + FIVE), accepted=tale.wall)


def test_a_batch_before_a_one_shot_is_noticed() -> None:
    """As long as a one-shot is due nothing that recurs is delivered."""
    tale = with_reminders(300, every=300)
    tale.commit("ada", create("once", START + 10_000, afterSeconds=10))
    tale.wait(310)
    with breaks(NAME, "['once'] are due too"):
        tale.deliver("m1", ("s0", START + FIVE), accepted=tale.wall)


def test_a_batch_is_accepted_at_one_time() -> None:
    """All reminders of a message share its time of acceptance."""
    tale = with_reminders(300, 300, every=300)
    tale.wait(310)
    tale.claim()
    tale.wait(1)
    records = (
        insert("m1", reminder_text(("s0", START + FIVE), ("s1", START + FIVE)), source="schedule"),
        dispatch("s0", tale.wall),
        dispatch("s1", tale.wall - 1),
    )
    with breaks(NAME, "at several times"):
        tale.commit("ada", *records)


def test_what_was_deleted_is_not_planned() -> None:
    """A reminder that is deleted is not missed by a batch."""
    tale = with_reminders(300, 300, every=300)
    tale.commit("ada", delete("s1"))
    tale.wait(310)
    tale.deliver("m1", ("s0", START + FIVE), accepted=tale.wall)


def test_a_wall_that_was_set_back_repeats_nothing() -> None:
    """What was delivered is not due again when the wall passes its time a second time."""
    tale = with_reminders(300, every=300)
    tale.wait(700)
    tale.deliver("m1", ("s0", START + 2 * FIVE), accepted=tale.wall)
    tale.step_wall(-3600)
    tale.wait(3600 + 200)
    tale.deliver("m2", ("s0", START + 3 * FIVE), accepted=tale.wall)
