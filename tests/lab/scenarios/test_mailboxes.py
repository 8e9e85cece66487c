"""The scenario of bare actors notices what it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.lab.faults.worlds import RandomChoices
from whenidle_actors.actor import Actor
from whenidle_actors.backlog import Ask, Backlog
from whenidle_actors.mailbox import Mailbox, Undelivered
from whenidle_lab.run import run
from whenidle_lab.scenarios.mailboxes import Mailboxes

if TYPE_CHECKING:
    from collections.abc import Callable


def _lose(self: Actor, message: object) -> None:
    """Accept a message and forget it."""


def _take_newest(self: Backlog) -> object:
    """Take the message that came last."""
    return self.pop()


def _fail_all_that_waits(self: Mailbox) -> None:
    """Make the tells that wait dead letters, too."""
    for entry in self.backlog.take_all() if self.backlog else ():
        self._bury(entry, Undelivered.RESTARTED, self.restart_error())


def _never_answer(self: Ask, reply: object, error: BaseException | None = None) -> None:
    """Answer an ask with something else."""
    self.done, self.reply = True, "nonsense"
    if self._task is not None:
        trio.lowlevel.reschedule(self._task)


@pytest.mark.parametrize(
    ("owner", "name", "mutant", "words"),
    [
        (Actor, "tell", _lose, "told once, and handled or buried 0 times"),
        (Backlog, "popleft", _take_newest, "handles"),
        (Mailbox, "fail_waiting_asks", _fail_all_that_waits, "did not survive a restart"),
        (Ask, "settle", _never_answer, "was answered 'nonsense'"),
    ],
)
def test_a_broken_mailbox_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, mutant: Callable[..., object], words: str
) -> None:
    """Lost tells, a queue in another order and answers of others are found within a few runs, in words that say so."""
    monkeypatch.setattr(owner, name, mutant)
    found = (run(Mailboxes(), RandomChoices(seed)).finding for seed in range(40))
    assert any(one is not None and words in one.text for one in found)
