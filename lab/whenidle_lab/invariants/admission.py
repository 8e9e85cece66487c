"""Due occurrences enter inboxes: not early, and each once (SPEC 1.3, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from whenidle_lab.invariants.frames import millis
from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Announced, Commit, Receipt, Written
    from whenidle_lab.trace import Happening


class NeverEarly(Invariant):
    """Nothing is admitted before its time has come by the wall clock of the trace.

    What is decided in a claim is decided between the beginning of the claim and the moment at which the commit is
    handed in; what needs no claim, because it makes its session, at that moment. The wall must have shown the
    target at some time in between. Whatever the runtime says about when it decided must be what the wall showed.
    Of a reminder it is decided in the moment in which the record of it is dated: that date is not before its target.
    """

    name = "never-early"
    listens: ClassVar[frozenset[What]] = frozenset({What.COMMIT_DURABLE})

    def __init__(self, books: Books) -> None:
        self._books = books

    def happened(self, happening: Happening) -> None:  # noqa: ARG002 - the books have read it
        """Judge what a commit admits."""
        commit = self._books.commit
        for dispatched in commit.dispatched:
            what = f"reminder {dispatched.id} of {dispatched.session}"
            self._check(what, dispatched.session, dispatched.target, dispatched.accepted)
            if dispatched.at < dispatched.target:
                self.fail(f"{what} is due at {dispatched.target}, and said at {dispatched.at} to be delivered")
        for announced in commit.announced:
            kind = "task" if announced.is_task else "reminder"
            self._check(f"{kind} {announced.id}", announced.session, announced.occurrence, None)
        for receipt in commit.receipts:
            session = receipt.data["targetSessionId"]
            self._check(f"task {receipt.task}", session, receipt.scheduled, receipt.delivered)

    def _check(self, what: str, session: str, target: int, decided: int | None) -> None:
        books = self._books
        since, until = books.decided(session), books.commit.began
        highest = books.walls.highest(since, until)
        if highest < target:
            self.fail(
                f"{what} is admitted {target - highest} ms early: it is due at {target}, the wall is at {highest}"
            )
        if decided is not None and not books.walls.showed(since, until, decided, decided):
            shown = list(books.walls.readings(since, until))
            self.fail(f"{what} is said to have been decided at {decided}; the wall showed {shown}")


class ExactlyOnce(Invariant):
    """Each occurrence is admitted once in the whole run, and the message and all records of it are one commit.

    A task is delivered to the session that it names; one that makes a session each time, to another each time.
    """

    name = "exactly-once"
    listens: ClassVar[frozenset[What]] = frozenset({What.COMMIT_DURABLE})

    def __init__(self, books: Books) -> None:
        self._books = books
        self._admitted: set[tuple[str, str, int, int]] = set()
        self._rules: dict[str, int] = {}
        """How many rules each task has had: a new one may come to an instant that the old one came to."""
        self._sessions: dict[str, tuple[str, int]] = {}
        """Which occurrence each session was made for that was made for one."""

    def happened(self, happening: Happening) -> None:  # noqa: ARG002 - the books have read it
        """Judge what a commit admits."""
        commit = self._books.commit
        if commit.announced or commit.dispatched:
            self._check_reminders(commit)
        if commit.announced or commit.receipts or commit.written:
            self._check_tasks(commit)

    def _check_reminders(self, commit: Commit) -> None:
        announced = [each for each in commit.announced if not each.is_task]
        said = [(each.session, each.id, each.prompt) for each in announced]
        kept = [(each.session, each.id, each.prompt) for each in commit.dispatched]
        if said != kept:
            self.fail(f"the messages of a commit deliver the reminders {said}; it records dispatches of {kept}")
        for each in announced:
            self._admit(each, 0)

    def _check_tasks(self, commit: Commit) -> None:
        written = {each.id: each for each in commit.written}
        for change in commit.written:
            if change.before is None or change.after is None or change.before.data["rule"] != change.after.data["rule"]:
                self._rules[change.id] = self._rules.get(change.id, 0) + 1
        announced = [each for each in commit.announced if each.is_task]
        said = [(each.id, each.occurrence, each.session, each.missed) for each in announced]
        kept = [
            (each.task, each.scheduled, each.data["targetSessionId"], each.data["missed"]) for each in commit.receipts
        ]
        if said != kept:
            self.fail(f"the messages of a commit deliver the tasks {said}; it has the receipts {kept}")
        for each, receipt in zip(announced, commit.receipts, strict=True):
            before, after = self._rows(each, written.get(each.id))
            self._check_destination(receipt, before["target"])
            self._check_row(each, receipt, before, after)
            if not _is_by_hand(before, after):
                self._admit(each, self._rules.get(each.id, 0))

    def _rows(self, announced: Announced, change: Written | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a task as it was before its delivery, and as it is after."""
        if change is None or change.before is None or change.after is None:
            self.fail(f"task {announced.id} is delivered, and the commit does not write it")
        return change.before.data, change.after.data

    def _check_row(self, announced: Announced, receipt: Receipt, before: dict[str, Any], after: dict[str, Any]) -> None:
        last = after.get("lastDelivery", {})
        told = {name: receipt.data[name] for name in ("scheduledAt", "deliveredAt", "targetSessionId")}
        if last != told or after.get("deliveries", 0) != before.get("deliveries", 0) + 1:
            self.fail(f"task {announced.id} is delivered as {told}; the task itself says {last}")
        if announced.prompt != before["prompt"]:
            self.fail(f"task {announced.id} is delivered with the prompt {announced.prompt!r}")
        if (receipt.scheduled, receipt.delivered) != (millis(told["scheduledAt"]), millis(told["deliveredAt"])):
            self.fail(f"the receipt of task {announced.id} is filed under {receipt.scheduled} and says {told}")

    def _check_destination(self, receipt: Receipt, target: dict[str, Any]) -> None:
        """Judge where a task is delivered to: where it says, or a session for that occurrence alone."""
        session, occurrence = receipt.data["targetSessionId"], (receipt.task, receipt.scheduled)
        if target.get("sessionId", session) != session:
            self.fail(f"task {receipt.task} is for session {target['sessionId']}, and is delivered to {session}")
        if target["kind"] == "new" and self._sessions.setdefault(session, occurrence) != occurrence:
            self.fail(f"task {receipt.task} makes a session each time, and is delivered to {session} again")

    def _admit(self, announced: Announced, rule: int) -> None:
        owner = "" if announced.is_task else announced.session
        key = (owner, announced.id, rule, announced.occurrence)
        if key in self._admitted:
            self.fail(f"the occurrence {announced.occurrence} of {announced.id} is admitted twice")
        self._admitted.add(key)


def _is_by_hand(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether a delivery left the rule where it was: somebody ran the task now."""
    fields = ("rule", "status", "scheduledAt", "coveredAt", "missed", "skipped")
    return all(before.get(field) == after.get(field) for field in fields)
