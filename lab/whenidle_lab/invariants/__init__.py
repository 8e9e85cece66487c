"""What holds in every run (SPEC 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_lab.invariants.admission import ExactlyOnce, NeverEarly
from whenidle_lab.invariants.books import Books
from whenidle_lab.invariants.cancels import CancelsAsTold
from whenidle_lab.invariants.disposal import NothingAfterDisposal
from whenidle_lab.invariants.exclusion import OneAtATime
from whenidle_lab.invariants.form import LogWellFormed
from whenidle_lab.invariants.idleness import WhenIdle
from whenidle_lab.invariants.losses import NothingLost
from whenidle_lab.invariants.management import AnswersAgree
from whenidle_lab.invariants.oracle import AsPlanned
from whenidle_lab.invariants.order import InboxOrder
from whenidle_lab.invariants.replaying import ReplayGivesState
from whenidle_lab.invariants.wakes import NoWakeLost

if TYPE_CHECKING:
    from whenidle_lab.scenario import Invariant


def standard_invariants() -> list[Invariant]:
    """Return fresh invariants that hold in every run of any scenario."""
    books = Books()
    return [
        LogWellFormed(books),
        NeverEarly(books),
        ExactlyOnce(books),
        AsPlanned(books),
        NothingLost(books),
        OneAtATime(books),
        InboxOrder(books),
        CancelsAsTold(books),
        WhenIdle(books),
        AnswersAgree(books),
        NothingAfterDisposal(books),
        ReplayGivesState(books),
        NoWakeLost(books),
    ]
