"""The scheduling oracle: what was admitted, and what was planned (SPEC 4, 5.8, 6.7).

Theory
------
A rule plans occurrences p1 < p2 < ..., and the runtime makes decisions d1, d2, ..., each at some reading of
the wall clock, each of which admits at most one occurrence and says how many it stands for. The question is
whether the two can be matched:

- every decision takes some planned occurrences, and no occurrence is taken twice;
- nothing is taken by a decision that is earlier than it;
- every occurrence up to the last decision is taken, or was given up for a reason.

Put as a graph, occurrences on one side and decisions on the other, an edge wherever p <= d, this asks for an
assignment in which each decision has the degree it claims. The neighbourhoods are convex: what a decision may take
are the occurrences from the first that is left up to the last one that is due. For such graphs the greedy
assignment in order is as good as any (Glover 1967): if decision after decision takes *all* that is left and
due, and the numbers do not come out, no other assignment makes them. So each decision takes a *run*, from the
committed next occurrence to the latest that is due, and the runs of a rule lie side by side without a gap.

What remains unknown is when a decision was made. The trace tells which readings of the wall were possible: from the
claim on the agent to the moment at which the commit was handed in (`NeverEarly` says why). So a decision is
a variable d, and what the commit says about it bounds d from both sides. With the run r1 ... rn, the next
occurrence q, s skipped, m missed, and a catch-up window of c:

    rn <= d < q             it took the latest that was due, and all of them: n = s + 1 + m
    rs < d - c <= r(s+1)    those that were skipped were too late, and the others were not

A decision is right if some possible reading of the wall, and whatever reading the runtime itself has put on
record, lies within these bounds. The bounds are intervals, and the readings are a few intervals, so that is
one comparison. The planned occurrences come from `plans`, the readings from the trace; the runtime's own rules, its
clock and its words are not asked.

What is given up, and the only reasons for it: a task or reminder was deleted; a task was paused, and goes on with the
first occurrence after somebody resumed it; it was given another rule, which begins then; an occurrence is beyond
the catch-up window; a wall that was set back passes a time again, whose occurrences are taken already.

Where `plans` has no answer (rules it does not cover, or whose next occurrence is more than 400 days away) what
depends on the plan is not judged, and of a run of more than 400 days only the end; what `NeverEarly` and `ExactlyOnce`
say holds there all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from whenidle_lab.invariants.frames import millis
from whenidle_lab.invariants.plans import Once, TooFar, plan_of
from whenidle_lab.scenario import Invariant
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whenidle_lab.invariants.books import Books
    from whenidle_lab.invariants.facts import Announced, Commit, Dispatched, Row, Written
    from whenidle_lab.invariants.plans import Plan
    from whenidle_lab.invariants.walls import Moment
    from whenidle_lab.trace import Happening

_EVER: Final = 1 << 62
"""Later than any instant, in milliseconds."""


@attrs.frozen
class Decision:
    """What a commit says was decided about a task."""

    task: str
    delivered: bool
    """Whether an occurrence was to be delivered; the others were skipped."""
    occurrence: int
    missed: int
    skipped: int
    decided: int | None
    """When, if the runtime has put that on record."""
    since: Moment
    """It was not decided before that."""


class AsPlanned(Invariant):
    """What is admitted, skipped and planned next can be matched to what each rule planned; see above."""

    name = "as-planned"
    listens: ClassVar[frozenset[What]] = frozenset({What.COMMIT_DURABLE})

    def __init__(self, books: Books) -> None:
        self._books = books
        self._covered: dict[str, int] = {}
        """The latest occurrence of its present rule that was decided about, by task."""

    def happened(self, happening: Happening) -> None:  # noqa: ARG002 - the books have read it
        """Judge what a commit decides."""
        commit = self._books.commit
        if commit.dispatched:
            self._check_reminders(commit)
        for written in commit.written:
            self._check_task(written, commit)
        if commit.receipts:
            self._check_company(commit)

    # Reminders --------------------------------------------------------------------------------

    def _check_reminders(self, commit: Commit) -> None:
        announced = [each for each in commit.announced if not each.is_task]
        for each, dispatched in zip(announced, commit.dispatched, strict=True):
            latest = dispatched.target
            if dispatched.accepted is not None:
                latest += (dispatched.accepted - dispatched.target) // dispatched.period * dispatched.period
            if each.occurrence != latest or (latest - dispatched.first) % max(dispatched.period, 1):
                self.fail(
                    f"reminder {each.id} of {each.session} is delivered for {each.occurrence}; planned are "
                    f"{dispatched.first} and every {dispatched.period} ms, the latest one due is {latest}"
                )
        for session in {dispatched.session: None for dispatched in commit.dispatched}:
            self._check_turn(session, [each for each in commit.dispatched if each.session == session])

    def _check_turn(self, session: str, dispatched: Sequence[Dispatched]) -> None:
        """Judge whether it was their turn: one-shots first, one at a time, then all the others at once."""
        left = self._books.sessions[session].reminders.values()
        order = [(each.target, each.number) for each in dispatched]
        if any(each.accepted is None for each in dispatched):
            before = [one.id for one in left if not one.period and (one.target, one.number) < order[0]]
            if len(dispatched) > 1 or before:
                self.fail(f"{session}: {[each.id for each in dispatched]} are delivered together, or before {before}")
            return
        if order != sorted(order):
            self.fail(f"{session}: {[each.id for each in dispatched]} are delivered in another order than they are due")
        if len({each.accepted for each in dispatched}) > 1:
            self.fail(f"{session}: the reminders of one message were accepted at several times")
        accepted = dispatched[0].accepted or 0
        missing = [one.id for one in left if one.target <= accepted]
        if missing:
            self.fail(f"{session}: {missing} are due too at {accepted}, and are left out of the message")

    # Tasks ------------------------------------------------------------------------------------

    def _check_task(self, written: Written, commit: Commit) -> None:
        before, after = written.before, written.after
        if after is None:
            self._covered.pop(written.id, None)
            return
        try:
            if before is None or before.data["rule"] != after.data["rule"]:
                self._covered.pop(written.id, None)
                self._check_first(written.id, after.data, commit)
                return
            decision = self._decision(written, commit)
            if decision is not None:
                self._check_decision(decision, before.data, after.data, commit)
            elif not self._is_by_hand(written, commit):
                self._check_edit(written.id, before.data, after.data, commit)
        except TooFar:
            return

    def _decision(self, written: Written, commit: Commit) -> Decision | None:
        """Return what was decided about a task that came due; None if nothing was."""
        if written.before is None or written.after is None or not _has_moved(written.before, written.after):
            return None
        before, after = written.before.data, written.after.data
        missed, skipped = (after.get(name, 0) - before.get(name, 0) for name in ("missed", "skipped"))
        receipt = next((each for each in commit.receipts if each.task == written.id), None)
        decided: int | None = None
        session = written.before.session
        if receipt is not None:
            occurrence, decided, session = receipt.scheduled, receipt.delivered, receipt.data["targetSessionId"]
            told = (receipt.data["missed"], receipt.data["skipped"])
            if told != (missed, skipped):
                self.fail(
                    f"the receipt of task {written.id} says {told} missed and skipped; the task {missed, skipped}"
                )
        elif _has_failed(written.before, written.after):
            failure = after["lastFailure"]
            occurrence, decided = millis(failure["scheduledAt"]), millis(failure["failedAt"])
        elif skipped:
            occurrence = millis(after["coveredAt"])
        else:
            return None
        since = self._books.decided(session)
        return Decision(written.id, decided is not None, occurrence, missed, skipped, decided, since)

    def _is_by_hand(self, written: Written, commit: Commit) -> bool:
        """Return whether somebody ran the task now, which leaves its plan alone."""
        if written.before is not None and written.after is not None and _has_failed(written.before, written.after):
            return True
        return any(each.task == written.id for each in commit.receipts)

    def _check_decision(
        self, decision: Decision, before: Mapping[str, Any], after: Mapping[str, Any], commit: Commit
    ) -> None:
        task, occurrence, target = decision.task, decision.occurrence, millis(before["scheduledAt"])
        self._covered[task] = occurrence
        if before["status"] != "active":
            self.fail(f"task {task} comes due though it is {before['status']}")
        plan = self._plan(after)
        if plan is None:
            return
        following = plan.next(occurrence)
        next_at = millis(after["scheduledAt"]) if after["status"] == "active" else None
        if next_at != following:
            self.fail(f"task {task}: after {occurrence} is planned {following}; it says {next_at}")
        try:
            run = plan.run(target, occurrence)
        except TooFar:
            self._check_last(decision, plan.next(occurrence - 1))
            low, high = occurrence, (_EVER if following is None else following) - 1
        else:
            self._check_run(decision, target, run)
            low, high = self._bounds(run, following, decision, after, once=isinstance(plan, Once))
        decided = decision.decided
        if not self._books.walls.showed(decision.since, commit.began, low, high) or (
            decided is not None and not low <= decided <= high
        ):
            self.fail(
                f"task {task}: {decision.missed} missed, {decision.skipped} skipped before {occurrence} is right from "
                f"{low} to {high}; it was decided at {decided}, when the wall showed "
                f"{list(self._books.walls.readings(decision.since, commit.began))}"
            )

    def _check_run(self, decision: Decision, target: int, run: Sequence[int]) -> None:
        """Judge which occurrences are taken, from the committed target to the latest one."""
        task, occurrence = decision.task, decision.occurrence
        if not run or run[0] != target or run[-1] != occurrence:
            self.fail(f"task {task} is decided about for {occurrence}; planned from {target} on is {_few(run)}")
        if len(run) != decision.missed + decision.skipped + decision.delivered:
            self.fail(
                f"task {task}: {len(run)} occurrences are planned from {target} to {occurrence}; it says "
                f"{decision.missed} were missed and {decision.skipped} skipped"
            )

    def _check_last(self, decision: Decision, planned: int | None) -> None:
        """Judge the latest occurrence of a run that is too long to be gone through."""
        if planned != decision.occurrence:
            self.fail(f"task {decision.task} is decided about for {decision.occurrence}; planned is {planned}")

    def _bounds(
        self, run: Sequence[int], following: int | None, decision: Decision, data: Mapping[str, Any], *, once: bool
    ) -> tuple[int, int]:
        """Return the readings of the wall between which the decision is right."""
        low, high = run[-1], (_EVER if following is None else following) - 1
        seconds = data.get("catchUpSeconds", self._books.catch_up_seconds)
        if seconds is not None and not once:
            window, skipped = seconds * 1000, decision.skipped
            if skipped:
                low = max(low, run[skipped - 1] + window + 1)
            if skipped < len(run):
                high = min(high, run[skipped] + window)
        return low, high

    def _check_first(self, task: str, data: Mapping[str, Any], commit: Commit) -> None:
        """Judge the first occurrence of a rule that begins."""
        rule, first = data["rule"], millis(data["scheduledAt"])
        walls, since = self._books.walls, self._books.decided()
        shown = list(walls.readings(since, commit.began))
        if rule["kind"] == "after":
            made = first - rule["afterSeconds"] * 1000
            if not walls.showed(since, commit.began, made, made):
                self.fail(f"task {task} counts from {made}, and was made at {shown}: {rule}")
        plan = self._plan(data)
        if plan is not None and not _follows(plan, first, shown):
            self.fail(f"task {task} begins with {first}, which is not the next after {shown}: {rule}")

    def _check_edit(self, task: str, before: Mapping[str, Any], after: Mapping[str, Any], commit: Commit) -> None:
        """Judge what an edit does to the plan: nothing, unless it resumes the task."""
        for name in ("missed", "skipped", "deliveries", "failures", "coveredAt", "lastDelivery", "lastFailure"):
            if before.get(name) != after.get(name):
                self.fail(f"task {task}: {name} has changed without a delivery, from {before.get(name)}")
        if after["status"] == "active" and before["status"] != "active":
            plan, first, covered = self._plan(after), millis(after["scheduledAt"]), self._covered.get(task, 0)
            shown = list(self._books.walls.readings(self._books.decided(), commit.began))
            if plan is not None and not _follows(plan, first, shown, covered):
                self.fail(f"task {task} is resumed for {first}, which is not the next after {covered} and {shown}")
        elif after["scheduledAt"] != before["scheduledAt"]:
            self.fail(f"task {task} moves from {before['scheduledAt']} to {after['scheduledAt']} without a reason")

    def _check_company(self, commit: Commit) -> None:
        """Judge which tasks share a message: one that comes due once has its own, others come in their order."""
        before = {each.id: each.before.data for each in commit.written if each.before is not None}
        for message in {each.message: None for each in commit.announced}:
            tasks = [each for each in commit.announced if each.message == message and each.is_task]
            if len(tasks) > 1:
                self._check_batch(tasks, before)

    def _check_batch(self, tasks: Sequence[Announced], before: Mapping[str, Mapping[str, Any]]) -> None:
        ids = [each.id for each in tasks]
        if any(before[each]["rule"]["kind"] in {"after", "at"} for each in ids):
            self.fail(f"tasks {ids} share a message, and one of them comes due once")
        places = [(millis(before[each]["scheduledAt"]), millis(before[each]["createdAt"]), each) for each in ids]
        if places != sorted(places):
            self.fail(f"tasks {ids} are delivered in another order than they are due")

    def _plan(self, data: Mapping[str, Any]) -> Plan | None:
        books = self._books
        return plan_of(data["rule"], data.get("gap", books.gap), data.get("overlap", books.overlap))


def _follows(plan: Plan, first: int, shown: Sequence[tuple[int, int]], covered: int = 0) -> bool:
    """Return whether `first` is the next occurrence after some reading of the wall, and after what is covered.

    Of the readings of a range the last one before `first` is the one to ask: the next occurrence never recedes.
    """
    return any(low < first and plan.next(max(min(high, first - 1), covered)) == first for low, high in shown)


def _has_moved(before: Row, after: Row) -> bool:
    """Return whether a task has another place in its plan than before."""
    return any(before.data.get(name) != after.data.get(name) for name in ("status", "scheduledAt", "coveredAt"))


def _has_failed(before: Row, after: Row) -> bool:
    return bool(after.data.get("failures", 0) > before.data.get("failures", 0))


def _few(run: Sequence[int]) -> str:
    return str(list(run)) if len(run) < 5 else f"{run[0]} to {run[-1]}"  # noqa: PLR2004 - what fits a line
