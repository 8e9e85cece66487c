"""The books of a run: what the trace says, read once for all invariants.

Everything durable is read from the JSON of the commits by a reader of the lab's own, and never asked of the
runtime. `form` keeps the books; it comes first of all invariants, so that the others find them up to date.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from whenidle_actors.tasks import Tasks
from whenidle_lab.invariants.facts import Commit, Receipt, Row, Written
from whenidle_lab.invariants.ledger import Ledger, Malformed
from whenidle_lab.invariants.stage import Stage
from whenidle_lab.invariants.walls import Moment, Walls
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World

START: Final = Moment(0, 0, 0)


class Books:
    """What has happened so far."""

    def __init__(self) -> None:
        self.walls: Walls = Walls()
        self.stage: Stage = Stage(self.walls)
        self.sessions: dict[str, Ledger] = {}
        self.tasks: dict[str, Row] = {}
        self.commit: Commit = Commit(-1, START, START)
        """The commit that became durable last."""
        self.begun: dict[int, Moment] = {}
        """When each commit was handed in whose caller was not told yet."""
        self.life: Moment = START
        """When the process began that lives now."""
        self.healed: Moment | None = None
        """When faults stopped; None while they may still happen."""
        self.troubles: int = 0
        """How often a commit or read of the store has failed."""
        self.options: Mapping[str, Any] = {}
        """What the host is opened with."""
        self.gap: str = "skip"
        """What the host has tasks do with local times that clocks skip."""
        self.overlap: str | None = None
        """What it has them do with local times that clocks show twice; None for the default of each kind."""
        self.catch_up_seconds: int | None = None
        """How late it has them delivered; None for however late."""
        self.handlers: Mapping[What, Callable[[Happening], None]] = {
            What.LIFE_BEGAN: self._begin_life,
            What.LIFE_ENDED: self.walls.take,
            What.CLOCK: self.walls.take,
            What.FAULTS_STOPPED: self._heal,
            What.COMMIT_BEGAN: self._begin_commit,
            What.COMMIT_DURABLE: self._commit,
            What.COMMIT_ENDED: self._end_commit,
            What.READ_FAILED: self._fail_read,
            What.TURN_BEGAN: self.stage.work_began,
            What.TURN_ENDED: self.stage.work_ended,
            What.MAINTENANCE_BEGAN: self.stage.work_began,
            What.MAINTENANCE_ENDED: self.stage.work_ended,
            What.WAIT_BEGAN: self.stage.wait_began,
            What.WAIT_ENDED: self.stage.wait_ended,
            What.HOST: self.stage.announced,
        }
        """What enters each kind of happening; the others say nothing that is kept. Raises `Malformed`."""

    def begin(self, world: World) -> None:
        """Learn what the host is asked for."""
        self.options = world.scenario.options()
        for suite in self.options.get("suites", ()):
            if isinstance(suite, Tasks):
                self.gap = suite.settings.gap.value
                self.overlap = None if suite.settings.overlap is None else suite.settings.overlap.value
                self.catch_up_seconds = suite.settings.catch_up_seconds

    def decided(self, session: str | None = None) -> Moment:
        """Return the moment before which nothing in the last commit was decided.

        What enters the inbox of `session` is decided while its agent is claimed. What needs no claim is decided
        when the commit is handed in; by a manager, who is not watched so closely, at any time before.
        """
        if self.commit.elsewhere:
            return self.life
        claims = [] if session is None else self.stage.of(session).claims
        return claims[0] if claims else self.commit.began

    def _begin_life(self, happening: Happening) -> None:
        self.walls.take(happening)
        self.stage.begin_life()
        self.begun.clear()
        self.life = self.walls.moment(happening)

    def _heal(self, happening: Happening) -> None:
        self.healed = self.walls.moment(happening)

    def _begin_commit(self, happening: Happening) -> None:
        self.begun[happening.detail["commit"]] = self.walls.moment(happening)

    def _end_commit(self, happening: Happening) -> None:
        self.begun.pop(happening.detail["commit"], None)
        self.troubles += happening.detail["error"] is not None

    def _fail_read(self, _: Happening) -> None:
        self.troubles += 1

    def _commit(self, happening: Happening) -> None:
        detail, now = happening.detail, self.walls.moment(happening)
        number = detail["commit"]
        commit = self.commit = Commit(
            number, self.begun.get(number, now), now, detail.get("elsewhere", False), detail["created"]
        )
        for session in detail["created"]:
            if session in self.sessions:
                raise Malformed(f"session {session} is created twice")
            ledger = self.sessions[session] = Ledger(session, detail["seeds"].get(session, 0))
            ledger.created_ns = now.ns
        for append in detail["appends"]:
            self._append(append, commit)
        for write in detail["tasks"]:
            self._write(write, commit)
        for receipt in detail["receipts"]:
            if receipt["task"] not in self.tasks:
                raise Malformed(f"a receipt of task {receipt['task']}, which does not exist")
            commit.receipts.append(
                Receipt(receipt["task"], receipt["scheduled"], receipt["delivered"], json.loads(receipt["data"]))
            )

    def _append(self, append: Mapping[str, Any], commit: Commit) -> None:
        ledger = self.sessions.get(append["session"])
        if ledger is None:
            raise Malformed(f"events for session {append['session']}, which does not exist")
        if append["expected"] != ledger.length:
            raise Malformed(
                f"session {ledger.session} has {ledger.length} events, and the next is numbered {append['expected']}"
            )
        ledger.append(append["records"], commit)
        if ledger.length > ledger.seed:
            ledger.changed_ns = commit.durable.ns
            commit.appended.append(ledger.session)

    def _write(self, write: Mapping[str, Any], commit: Commit) -> None:
        identity, text = write["id"], write["task"]
        before = self.tasks.get(identity)
        if write["expected"] != (None if before is None else before.version):
            raise Malformed(f"task {identity} is written as of version {write['expected']}, which it does not have")
        after = None
        if text is None:
            del self.tasks[identity]
        else:
            after = Row(json.loads(text), write["version"], write["next"], write["session"])
            if before is not None and after.version <= before.version:
                raise Malformed(f"task {identity}: version {after.version} does not follow {before.version}")
            self.tasks[identity] = after
        commit.written.append(Written(identity, before, after))
