"""Each kind of fault happens as it is named, and only where it is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whenidle_lab.faults import FaultKind
from whenidle_lab.faults.kinds import LIES, MODIFIERS
from whenidle_lab.run import run
from whenidle_lab.trace import What

from .worlds import RandomChoices, busy, runs, those

if TYPE_CHECKING:
    from whenidle_lab.findings import Run

ENGINES = ("memory", "sqlite")


def ended(found: Run, kind: FaultKind) -> list[dict[str, object]]:
    """Return how commits ended that met a fault."""
    return [dict(one.detail) for one in those(found, What.COMMIT_ENDED) if one.detail["fate"] == kind]


def durable(found: Run) -> set[int]:
    """Return the numbers of the commits that became durable."""
    return {one.detail["commit"] for one in those(found, What.COMMIT_DURABLE)}


@pytest.mark.parametrize("kind", sorted(set(FaultKind) - MODIFIERS - LIES))
def test_a_fault_happens_where_it_is_allowed_and_nowhere_else(kind: FaultKind) -> None:
    """A kind that is allowed happens in some run, without a finding, and no other does."""
    found = list(runs(6, kind))
    assert set().union(*(one.faults for one in found)) == {kind.value}
    assert [one.finding for one in found if one.finding is not None] == []


def test_without_faults_nothing_goes_wrong() -> None:
    """A scenario that bears no fault lives once, and every commit is done."""
    (found,) = runs(1)
    assert (found.finding, found.faults, found.lives) == (None, frozenset(), 1)
    assert {one.detail["fate"] for one in those(found, What.COMMIT_ENDED)} == {"done"}


def test_nothing_goes_wrong_once_faults_have_stopped() -> None:
    """After the scenario has ended no kind of fault happens any more, whatever was planned."""
    for found in runs(8, *FaultKind):
        steps = [one.step for one in those(found, What.FAULTS_STOPPED)]
        for one in found.trace:
            if steps and one.step > steps[0]:
                assert one.what not in {What.READ_FAILED, What.LIFE_BEGAN}
                assert one.what is not What.COMMIT_BEGAN or one.life == found.lives - 1
                assert one.what is not What.TURN_BEGAN or one.detail["fault"] is None


def test_a_crash_is_followed_by_another_life() -> None:
    """A process that dies between two rounds is followed by one that finds what was durable, some time later."""
    crashed = [found for found in runs(8, FaultKind.CRASH) if found.faults]
    assert max(found.lives for found in crashed) == 4
    for found in crashed:
        lives = those(found, What.LIFE_BEGAN)
        assert [one.detail["how"] for one in those(found, What.LIFE_ENDED)] == [
            *["crashed"] * (len(lives) - 1),
            "finished",
        ]
        ends = {one.life: one.wall_millis for one in those(found, What.LIFE_ENDED)}
        for one in lives[1:]:
            assert one.wall_millis - ends[one.life - 1] == pytest.approx(one.detail["down"] * 1000, abs=1)


def test_a_host_that_is_stopped_ends_in_order() -> None:
    """A host that is told to stop interrupts or finishes its turns, and the next process goes on."""
    stopped = [found for found in runs(8, FaultKind.STOPPED) if found.faults]
    assert stopped
    for found in stopped:
        assert {one.detail["how"] for one in those(found, What.LIFE_ENDED)} == {"stopped", "finished"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "keeps"),
    [
        (FaultKind.CRASH_BEFORE_COMMIT, False),
        (FaultKind.CRASH_IN_COMMIT, False),
        (FaultKind.CRASH_AFTER_COMMIT, True),
    ],
)
def test_a_process_dies_at_a_commit(kind: FaultKind, engine: str, *, keeps: bool) -> None:
    """Of the commit at which the process died nothing is durable, or all, and nobody was told."""
    found = next(one for one in runs(10, kind, engine=engine) if one.faults)
    (last, *_) = [one for one in those(found, What.LIFE_ENDED) if one.detail["how"] == "crashed"]
    begun = {one.detail["commit"] for one in those(found, What.COMMIT_BEGAN) if one.life == last.life}
    told = {one.detail["commit"] for one in those(found, What.COMMIT_ENDED) if one.life == last.life}
    assert len(begun - told) >= 1
    assert bool((begun - told) & durable(found)) is keeps


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "errors", "keeps"),
    [
        (FaultKind.REFUSED, {"StoreFull", "StoreBusy", "CommitRefused"}, False),
        (FaultKind.DISK_FULL, {"StoreFull"}, False),
        (FaultKind.UNCERTAIN_LOST, {"CommitUncertain"}, False),
        (FaultKind.UNCERTAIN_KEPT, {"CommitUncertain"}, True),
        (FaultKind.DEFECT, {"Defect"}, None),
        (FaultKind.FAILED_KEPT, {"CommitRefused"}, True),
        (FaultKind.LOST, {None}, False),
    ],
)
def test_a_commit_fails_as_it_is_named(
    kind: FaultKind, errors: set[str | None], engine: str, *, keeps: bool | None
) -> None:
    """What the caller of a commit is told, and whether it happened, is what the kind says; a defect may do either."""
    seen: set[object] = set()
    kept: set[bool] = set()
    for found in runs(12, kind, engine=engine):
        for end in ended(found, kind):
            if end["error"] == "SessionExists":  # it would have been refused anyway
                continue
            seen.add(end["error"])
            kept.add(end["commit"] in durable(found))
    assert seen == errors
    assert kept == ({True, False} if keeps is None else {keeps})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_disk_that_tears_keeps_a_part(engine: str) -> None:
    """The process dies in a commit of which a part can be read afterwards; that breaks what every store promises."""
    found = list(runs(12, FaultKind.PARTLY_KEPT, engine=engine))
    assert {kind for one in found for kind in one.faults} == {"partly-kept"}
    parts = [
        len(commit.detail["appends"][0]["records"])
        for one in found
        for commit in those(one, What.COMMIT_DURABLE)
        if commit.detail["appends"] and "partly-kept" in one.faults
    ]
    assert 1 in parts


def test_lies_are_noticed() -> None:
    """With a disk that says that it has kept what it has not, some run is found to be wrong."""
    assert any(found.finding is not None for found in runs(30, FaultKind.LOST))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slow_store_takes_virtual_time(engine: str) -> None:
    """Slow commits take time before they are durable, after it, or both; the store is never in two at once."""
    spans: list[tuple[bool, bool]] = []
    for found in runs(12, FaultKind.SLOW, engine=engine):
        assert found.finding is None
        began = {one.detail["commit"]: one.monotonic_ns for one in those(found, What.COMMIT_BEGAN)}
        kept = {one.detail["commit"]: one.monotonic_ns for one in those(found, What.COMMIT_DURABLE)}
        for one in those(found, What.COMMIT_ENDED):
            number = one.detail["commit"]
            if one.detail["fate"] == "slow" and number in kept:
                spans.append((kept[number] > began[number], one.monotonic_ns > kept[number]))
    assert {(True, False), (False, True), (True, True)} <= set(spans)


def test_reads_fail_for_a_while() -> None:
    """An unreadable store says that it cannot tell, and answers again later."""
    found = next(one for one in runs(20, FaultKind.UNREADABLE) if one.faults)
    assert {one.detail["error"] for one in those(found, What.READ_FAILED)} == {"CommitUncertain"}
    assert found.finding is None


@pytest.mark.parametrize(
    ("kind", "how", "sign"),
    [(FaultKind.ROLLBACK, "step", -1), (FaultKind.JUMP, "step", 1), (FaultKind.SUSPEND, "suspend", 1)],
)
def test_the_wall_clock_is_moved(kind: FaultKind, how: str, sign: int) -> None:
    """It is set back or forward, or runs on while the machine sleeps; always announced, unless that is allowed too."""
    steps = [one for found in runs(8, kind) for one in those(found, What.CLOCK)]
    assert steps
    assert all(one.detail["how"] == how and one.detail["by"] * sign > 0 and one.detail["announced"] for one in steps)


def test_steps_may_be_told_to_nobody() -> None:
    """A step that is not announced is one fault more."""
    found = [one for one in runs(8, FaultKind.JUMP, FaultKind.UNANNOUNCED) if one.faults]
    assert {one.faults for one in found} == {frozenset({"jump"}), frozenset({"jump", "unannounced"})}
    for one in found:
        silent = any(not step.detail["announced"] for step in those(one, What.CLOCK))
        assert silent is ("unannounced" in one.faults)


def test_a_step_may_come_at_the_very_instant_of_a_wake() -> None:
    """Time has just moved to the end of a wait, nobody has run since, and the wall is another."""
    found = next(one for one in runs(30, FaultKind.JUMP, FaultKind.AT_WAKE) if "at-wake" in one.faults)
    step = those(found, What.CLOCK)[0]
    before = [one for one in found.trace if one.step < step.step]
    assert before[-1].monotonic_ns < step.monotonic_ns


def test_a_drift_ends() -> None:
    """The wall runs at another rate for a while, and true again before anything is judged."""
    for found in runs(8, FaultKind.DRIFT):
        drifts = [one.detail["by"] for one in those(found, What.CLOCK)]
        assert drifts == [] or (drifts[0] != 0 and drifts[-1] == 0)
        assert found.finding is None


@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        (FaultKind.TURN_RAISES, {"raised"}),
        (FaultKind.TURN_HANGS, {"returned"}),
        (FaultKind.TURN_IGNORES_CANCEL, {"returned"}),
        (FaultKind.TURN_FLOODS, {"returned"}),
    ],
)
def test_a_turn_function_misbehaves(kind: FaultKind, ways: set[str]) -> None:
    """The trace says of a turn what its function does wrong, and how it ended."""
    seen: set[str] = set()
    for found in runs(10, kind):
        wrong = {(one.agent, one.detail["turn"]) for one in those(found, What.TURN_BEGAN) if one.detail["fault"]}
        seen |= {one.detail["how"] for one in those(found, What.TURN_ENDED) if (one.agent, one.detail["turn"]) in wrong}
    assert seen == ways


def test_a_flood_is_many_messages() -> None:
    """A turn that floods sends its own agent messages of every kind."""
    texts = [
        one.detail
        for found in runs(10, FaultKind.TURN_FLOODS)
        for one in those(found, What.SEND_BEGAN)
        if one.detail["text"].startswith("flood")
    ]
    assert {detail["how"] for detail in texts} == {"followup", "steer", "inject"}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (FaultKind.AGENT_DISPOSED, What.DISPOSE_ENDED),
        (FaultKind.AGENT_RESTARTED, What.DISPOSE_ENDED),
        (FaultKind.AGENT_CANCELLED, What.CANCEL),
        (FaultKind.AGENT_FORKED, What.FORKED),
    ],
)
def test_something_is_done_to_an_agent(kind: FaultKind, what: What) -> None:
    """Somebody beside the scenario disposes, restores, cancels or forks an agent."""
    assert any(those(found, what) for found in runs(8, kind))


def test_agents_leave_memory_early() -> None:
    """Quiet agents are passivated, although the host of the scenario would keep them."""
    kinds = {one.detail["event"] for found in runs(8, FaultKind.AGENT_PASSIVATED) for one in those(found, What.HOST)}
    assert "agent-passivated" in kinds


def test_a_run_with_every_fault_is_repeated_by_its_choices() -> None:
    """The choices of a run make the same run, faults and all."""
    for seed in range(3):
        first = run(busy(*FaultKind, most=2), RandomChoices(seed), digest=True)
        again = run(busy(*FaultKind, most=2), None, first.choices, digest=True)
        assert (again.digest, again.faults) == (first.digest, first.faults)
