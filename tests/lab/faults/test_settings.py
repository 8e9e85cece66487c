"""Which faults a scenario bears."""

from whenidle_lab.choices import Topic
from whenidle_lab.faults import NO_FAULTS, FaultKind, Faults
from whenidle_lab.faults.kinds import AT_COMMITS, LIES, MODIFIERS, TOPICS


def test_all_faults_leave_the_store_honest() -> None:
    """The full set has every kind but those in which a store breaks its own promises, unless they are asked for."""
    assert Faults.all().kinds == set(FaultKind) - LIES
    assert Faults.all(lies=True).kinds == set(FaultKind)
    assert not NO_FAULTS.kinds


def test_every_kind_is_drawn_from_one_topic_or_modifies_others() -> None:
    """No kind is forgotten, and none is in two topics."""
    drawn = [kind for kinds in TOPICS.values() for kind in kinds]
    assert sorted(drawn) == sorted(set(FaultKind) - MODIFIERS)
    assert set(drawn) > AT_COMMITS > LIES


def test_settings_are_narrowed_without_changing_them() -> None:
    """Kinds are left out, and estimates given, in a copy."""
    faults = Faults.all()
    narrow = faults.without(FaultKind.CRASH, FaultKind.DRIFT).sized(rounds=7, commits=8, turns=9)
    assert faults.kinds - narrow.kinds == {FaultKind.CRASH, FaultKind.DRIFT}
    assert (narrow.rounds, narrow.commits, narrow.turns) == (7, 8, 9)


def test_kinds_of_a_topic_are_always_in_the_same_order() -> None:
    """What is drawn from does not depend on how a set is iterated."""
    kinds = {FaultKind.DRIFT, FaultKind.JUMP, FaultKind.ROLLBACK, FaultKind.CRASH}
    assert Faults(frozenset(kinds)).of(Topic.CLOCK) == [FaultKind.ROLLBACK, FaultKind.JUMP, FaultKind.DRIFT]
