from __future__ import annotations

import itertools

from tests.lab.look.busy_day import BusyDay, Shifting, live
from whenidle_lab.run import run
from whenidle_lab.trace import What


def test_a_detailed_run_tells_how_full_mailboxes_are() -> None:
    """Each change of a mailbox is told once, and in the end nobody has anything."""
    depths: dict[tuple[int, str], list[int]] = {}
    for happening in live().trace:
        if happening.what is What.DEPTH:
            depths.setdefault((happening.life, happening.agent), []).append(happening.detail["depth"])
    assert {agent for _, agent in depths} == {"ada", "bob", "eve"}
    for curve in depths.values():
        assert curve[0] > 0
        assert all(before != after for before, after in itertools.pairwise(curve))


def test_what_only_pictures_show_does_not_change_the_run() -> None:
    """A run that is not detailed has no depths, and otherwise the same trace and digest."""
    plain = run(BusyDay(), Shifting(), digest=True)
    detailed = run(BusyDay(), Shifting(), detailed=True, digest=True)
    assert plain.digest == detailed.digest
    assert [one for one in detailed.trace if one.what is not What.DEPTH] == list(plain.trace)
    assert len(detailed.trace) > len(plain.trace)
