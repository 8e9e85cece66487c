"""Cancels empty inboxes, or keep them (SPEC 2.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Removed
    from whenidle_lab.trace import Happening


class CancelsAsTold(Invariant):
    """A cancel that keeps the inbox removes nothing from it, and one that empties it leaves nothing in it.

    Which cancel a record in the log is of is told by its cause. Where several of one cause are in flight that
    were told differently, and where none is that the world knows of, nothing can be said.
    """

    name = "cancels-as-told"
    listens: ClassVar[frozenset[What]] = frozenset(
        {What.CANCEL, What.CANCEL_ENDED, What.COMMIT_DURABLE, What.LIFE_BEGAN}
    )

    def __init__(self, books: Books) -> None:
        self._books = books
        self._open: dict[int, tuple[str, str, bool]] = {}
        """The session of each cancel in flight, its cause, and whether it keeps the inbox."""

    def happened(self, happening: Happening) -> None:
        """Judge what leaves inboxes."""
        what, detail = happening.what, happening.detail
        if what is What.COMMIT_DURABLE:
            if self._open:
                for removed in self._books.commit.removed:
                    self._check(removed)
        elif what is What.CANCEL:
            self._open[detail["cancel"]] = (happening.agent, detail["cause"], detail["keep_inbox"])
        elif what is What.CANCEL_ENDED:
            self._open.pop(detail["cancel"], None)
        else:
            self._open.clear()

    def _check(self, removed: Removed) -> None:
        keeps = {
            keeps
            for session, cause, keeps in self._open.values()
            if session == removed.session and removed.cause in {None, cause}
        }
        by_cancel = removed.cause is not None or len(removed.ids) > 1  # a user removes one at a time
        if by_cancel and keeps == {True} and removed.ids:
            self.fail(f"a cancel of {removed.session} that keeps the inbox has removed {removed.ids}")
        if by_cancel and keeps == {False} and set(removed.ids) != set(removed.pending):
            self.fail(
                f"a cancel of {removed.session} that empties the inbox has removed {removed.ids} of {removed.pending}"
            )
