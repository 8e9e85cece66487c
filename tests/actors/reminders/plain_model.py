"""A plain model of one agent with reminders, written from the contract alone. All times are milliseconds."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from .faults import Fate

Occurrences: TypeAlias = tuple[tuple[str, int], ...]
"""What a message delivers: ids and occurrences; nothing for a user's message."""

REMINDER_TURN = 7_000
FIRST_BACKOFF = 100


@attrs.define
class Planned:
    id: str
    kind: str
    target: int
    period: int = 0


@attrs.define
class Work:
    """A message that waits or is being run."""

    duration: int
    delivers: Occurrences = ()
    redelivered: bool = False


@attrs.define
class Model:
    wall: int
    clock: int = 0
    """Monotonic time."""
    reminders: list[Planned] = attrs.Factory(list[Planned])
    """Active ones in creation order."""
    used: int = 0
    pending: list[Work] = attrs.Factory(list[Work])
    running: Work | None = None
    ends: int = 0
    """When what is running ends."""
    fate: Fate | None = None
    """What befalls the next commit that changes reminders."""
    failures: int = 0
    retry: int = 0
    """No delivery is tried before then."""
    deliveries: list[tuple[int, Occurrences]] = attrs.Factory(list[tuple[int, Occurrences]])
    runs: list[tuple[int, Occurrences, bool]] = attrs.Factory(list[tuple[int, Occurrences, bool]])

    def create(self, kind: str, seconds: int) -> str | None:
        """Return the new id, None if the answer is that it is uncertain."""
        name = f"schedule-{self.used + 1}"
        fate = self._meet()
        if fate in {None, Fate.KEPT}:
            self.used += 1
            period = seconds * 1000 if kind == "every" else 0
            self.reminders.append(Planned(name, kind, self.wall + seconds * 1000, period))
        if fate is not None:
            return None
        self.answer()
        return name

    def delete(self, name: str) -> bool | None:
        """Return whether there was anything to delete, None if the answer is that it is uncertain."""
        found = [reminder for reminder in self.reminders if reminder.id == name]
        fate = self._meet() if found else None
        if found and fate in {None, Fate.KEPT}:
            self.reminders.remove(found[0])
        if fate is not None:
            return None
        self.answer()
        return bool(found)

    def answer(self) -> None:
        """Have found that the store is well: a delivery that waits to be tried again is tried at once."""
        self.retry = min(self.retry, self.clock)

    def restart(self, down: int) -> None:
        """Lose what is only in memory; what was being run is run again."""
        if self.running is not None:
            self.pending.insert(0, attrs.evolve(self.running, redelivered=True))
        self.wall += down
        self._forget()

    def dispose_and_restore(self) -> None:
        """Abort what is being run."""
        self._forget()

    def _forget(self) -> None:
        self.running = None
        self.failures = self.retry = 0

    def run(self, by: int = 0) -> None:
        """Let time pass, and all happen that happens then."""
        end = self.clock + by
        while True:
            self._settle()
            following = [end]
            if self.running is not None:
                following.append(self.ends)
            elif self.reminders:
                target = min(reminder.target for reminder in self.reminders)
                following.append(max(self.clock + target - self.wall, self.retry))
            if self.clock < self.retry:
                following.append(self.retry)
            step = min(following) - self.clock
            self.clock += step
            self.wall += step
            if step == 0 and self.clock == end:
                return

    def _settle(self) -> None:
        """Let all happen that happens at this instant."""
        if self.clock >= self.retry and not self._due():
            self.failures = 0
        while True:
            if self.running is not None:
                if self.ends > self.clock:
                    return
                self.running = None
            if self.pending:
                self.running = self.pending.pop(0)
                self.ends = self.clock + self.running.duration
                self.runs.append((self.wall, self.running.delivers, self.running.redelivered))
            elif self.clock < self.retry or not self._deliver():
                return

    def _due(self) -> list[Planned]:
        due = [reminder for reminder in self.reminders if reminder.target <= self.wall]
        return sorted(due, key=lambda reminder: reminder.target)

    def _deliver(self) -> bool:
        """Admit what is due next, and return whether anything was due."""
        due = self._due()
        if not due:
            self.failures = 0
            return False
        fate = self._meet()
        if fate in {None, Fate.KEPT}:
            self._admit(due)
        if fate is None:
            self.failures = 0
        else:
            self.failures += 1
            self.retry = self.clock + FIRST_BACKOFF * 2 ** (self.failures - 1)
        return True

    def _admit(self, due: list[Planned]) -> None:
        one_shots = [reminder for reminder in due if not reminder.period]
        if one_shots:
            self.reminders.remove(one_shots[0])
            delivers: Occurrences = ((one_shots[0].id, one_shots[0].target),)
        else:
            latest = [
                reminder.target + (self.wall - reminder.target) // reminder.period * reminder.period for reminder in due
            ]
            delivers = tuple((reminder.id, when) for reminder, when in zip(due, latest, strict=True))
            for reminder, when in zip(due, latest, strict=True):
                reminder.target = when + reminder.period
        self.deliveries.append((self.wall, delivers))
        self.pending.append(Work(REMINDER_TURN, delivers))

    def _meet(self) -> Fate | None:
        fate, self.fate = self.fate, None
        return fate
