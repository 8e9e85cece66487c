"""What a host with tasks does, said plainly in whole numbers and without any of the product's code.

The agent `root` is given work that takes time; turns of due tasks take none. All times are milliseconds.
"""

from __future__ import annotations

from typing import Literal

import attrs

Target = Literal["this_session", "new_once", "new"]
Occurrences = tuple[tuple[int, int, int], ...]
"""Tasks by number, each with the occurrence and how many it missed."""

RETRY = 100


@attrs.define
class Plan:
    """A task."""

    number: int
    target: Target
    period: int | None
    next: int
    anchor: int
    status: str = "active"
    deliveries: int = 0
    missed: int = 0
    covered: int | None = None

    def first_after(self, moment: int) -> int:
        """Return the first occurrence later than `moment`."""
        occurrence = self.anchor
        if self.period is not None and occurrence <= moment:
            occurrence += ((moment - occurrence) // self.period + 1) * self.period
        return occurrence


@attrs.define
class Model:
    wall: int
    mono: int = 0
    plans: dict[int, Plan] = attrs.Factory(dict)
    made: int = 0
    work: list[int] = attrs.Factory(list)
    """How long each message that `root` still has to handle takes; it is at the first one."""
    since: int = 0
    """When it began with that."""
    blocked_until: int = 0
    """Until when deliveries to `root` are put off after a failure."""
    fails: bool = False
    """Whether the next delivery to `root` fails."""
    deliveries: list[tuple[str, int, Occurrences]] = attrs.Factory(list)
    """To `root`, or to a session of a task's: when, and what."""

    def create(self, target: Target, period: int | None, first: int) -> Plan:
        plan = Plan(self.made, target, period, first, first)
        self.plans[self.made] = plan
        self.made += 1
        return plan

    def resume(self, plan: Plan) -> bool:
        if plan.status == "active":
            return True
        moment = self.wall if plan.covered is None else max(self.wall, plan.covered)
        following = plan.first_after(moment)
        if following <= moment:
            return False
        plan.next, plan.status = following, "active"
        return True

    def set_period(self, plan: Plan, period: int) -> None:
        if plan.period != period:
            plan.period, plan.next, plan.covered = period, self.wall + period, None
            plan.anchor = plan.next
            plan.status = "active" if plan.status == "ended" else plan.status

    def run_by_hand(self, plan: Plan) -> None:
        plan.deliveries += 1
        self.deliveries.append((str(plan.number), self.wall, ((plan.number, self.wall, 0),)))

    def add_work(self, duration: int) -> None:
        if not self.work:
            self.since = self.mono
        self.work.append(duration)

    def restart(self, down: int) -> None:
        self.wall += down
        self.since = self.mono
        self.blocked_until = self.mono
        self.fails = False

    def run(self, by: int = 0) -> None:
        """Let time pass, and all happen that happens then."""
        end = self.mono + by
        while True:
            self._settle()
            then = min(self._next_moments(), default=end)
            then = min(then, end)
            self.wall += then - self.mono
            self.mono = then
            if then == end:
                self._settle()
                return

    def _next_moments(self) -> list[int]:
        moments = [self.mono + plan.next - self.wall for plan in self.plans.values() if plan.status == "active"]
        if self.work:
            moments.append(self.since + self.work[0])
        moments.append(self.blocked_until)
        return [moment for moment in moments if moment > self.mono]

    def _settle(self) -> None:
        while self.work and self.since + self.work[0] <= self.mono:
            self.since += self.work.pop(0)
        due = [plan for plan in self.plans.values() if plan.status == "active" and plan.next <= self.wall]
        for plan in due:
            if plan.target != "this_session":
                self._deliver(str(plan.number), [plan])
        here = sorted(
            (plan for plan in due if plan.target == "this_session"), key=lambda plan: (plan.next, plan.number)
        )
        if not here or self.work or self.mono < self.blocked_until:
            return
        singles = [[plan] for plan in here if plan.period is None]
        together = [plan for plan in here if plan.period is not None]
        for group in [*singles, together]:
            if group:
                if self.fails:
                    self.fails = False
                    self.blocked_until = self.mono + RETRY
                    return
                self._deliver("root", group)

    def _deliver(self, session: str, plans: list[Plan]) -> None:
        told: list[tuple[int, int, int]] = []
        for plan in plans:
            missed = 0 if plan.period is None else (self.wall - plan.next) // plan.period
            occurrence = plan.next + missed * (plan.period or 0)
            plan.covered = occurrence
            plan.deliveries += 1
            plan.missed += missed
            told.append((plan.number, occurrence, missed))
            if plan.period is None:
                plan.status = "ended"
            else:
                plan.next = occurrence + plan.period
        self.deliveries.append((session, self.wall, tuple(told)))
