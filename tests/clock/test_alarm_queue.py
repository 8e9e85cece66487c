from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from whenidle_clock.alarm_queue import AlarmQueue


@pytest.mark.parametrize("spread", [1, 1_000, 100_000])
@pytest.mark.parametrize("look", [False, True])
def test_stale_entries_stay_bounded(spread: int, look: bool) -> None:
    """Re-arming a few keys for ever, looked at or not, does not grow the alarm."""
    queue: AlarmQueue[int] = AlarmQueue()
    queue.arm(-1, 98 * spread)
    assert queue.earliest() == 98 * spread
    targets: dict[int, int] = {-1: 98 * spread}
    for turn in range(20_000):
        targets[turn % 10] = turn * 7919 % 97 * spread
        queue.arm(turn % 10, targets[turn % 10])
        if look or turn % 501 == 0:
            assert queue.earliest() == min(targets.values())
        assert queue.count_stale() <= 2 * 10 + 65 * 11
    assert queue.take_due(98 * spread, 100)[-1] == -1
    assert (len(queue), queue.earliest(), queue.count_stale()) == (0, None, 0)


class AlarmQueueModel(RuleBasedStateMachine):
    """The queue against a list of (target, order of arming, key) that is sorted anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: AlarmQueue[int] = AlarmQueue()
        self.model: dict[int, tuple[int, int]] = {}
        self.now = 0
        self.count = 0

    @rule(key=st.integers(0, 12), ahead=st.one_of(st.integers(-5, 5), st.integers(-100_000, 100_000)))
    def arm(self, key: int, ahead: int) -> None:
        self.count += 1
        assert self.queue.arm(key, self.now + ahead) == (key in self.model)
        self.model[key] = (self.now + ahead, self.count)

    @rule(key=st.integers(0, 12))
    def disarm(self, key: int) -> None:
        assert self.queue.disarm(key) == (self.model.pop(key, None) is not None)

    @rule()
    def look(self) -> None:
        assert self.queue.earliest() == min((target for target, _ in self.model.values()), default=None)

    @rule(by=st.one_of(st.integers(-20, 20), st.integers(-50_000, 50_000)), limit=st.integers(1, 8))
    def take(self, by: int, limit: int) -> None:
        self.now += by
        order = sorted(self.model, key=self.model.__getitem__)
        due = [key for key in order if self.model[key][0] <= self.now][:limit]
        assert self.queue.take_due(self.now, limit) == due
        for key in due:
            del self.model[key]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        assert self.queue.target(key) == self.model[key][0]

    @invariant()
    def counts(self) -> None:
        assert len(self.queue) == len(self.model)
        assert self.queue.count_stale() >= 0


AlarmQueueModel.TestCase.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
TestAlarmQueue: Callable[[], object] = AlarmQueueModel.TestCase
