"""Nothing of a disposed agent is alive (SPEC 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from whenidle_lab.invariants.remains import remains_of
from whenidle_lab.scenario import EachRound
from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_actors.agent_core import AgentCore
    from whenidle_lab.invariants.books import Books
    from whenidle_lab.trace import Happening
    from whenidle_lab.world import World


class NothingAfterDisposal(EachRound):
    """When a disposal has returned, and until the agent is restored, nothing of it runs, waits or is written.

    No turn, no maintenance task, no claim, no place in the registry, no target with the alarm, no commit; and those
    who waited for it are let go before time passes, and so are the runtime's own tasks that worked for it. As soon
    as a disposal is asked for, whatever of the agent runs is cancelled.
    """

    name = "nothing-after-disposal"
    listens: ClassVar[frozenset[What]] = frozenset(
        {
            What.DISPOSE_BEGAN,
            What.DISPOSE_ENDED,
            What.HOST,
            What.COMMIT_DURABLE,
            What.TURN_BEGAN,
            What.MAINTENANCE_BEGAN,
            What.LIFE_BEGAN,
            What.LIFE_ENDED,
        }
    )

    def __init__(self, books: Books) -> None:
        self._books = books
        self._asked: dict[str, list[int]] = {}
        """Which agent each disposal that has not returned is about."""
        self._gone: dict[str, int] = {}
        """Sessions whose agents were disposed, and when, in monotonic time."""
        self._searched: set[str] = set()
        """Those of them of which nothing was alive when time had passed."""

    def happened(self, happening: Happening) -> None:
        """Judge what ends, and what should have ended."""
        what, agent = happening.what, happening.agent
        if what is What.COMMIT_DURABLE:
            if self._gone:
                self._check_commit()
            return
        player = self._books.stage.of(agent)
        if what is What.HOST:
            self._announced(happening)
        elif what is What.DISPOSE_BEGAN:
            self._asked.setdefault(agent, []).append(player.born if happening.detail["current"] else 0)
        elif what is What.DISPOSE_ENDED:
            self._disposed(happening)
        elif what in {What.TURN_BEGAN, What.MAINTENANCE_BEGAN}:
            if agent in self._gone:
                self.fail(f"{agent} was disposed, and something of it begins to run")
        elif what is What.LIFE_BEGAN or happening.detail["how"] in {"finished", "stopped"}:
            self._check_end(is_over=what is What.LIFE_ENDED)

    def look(self, world: World) -> None:
        """Judge what the runtime still holds of agents that were disposed."""
        if not self._gone and not self._asked:
            return
        now_ns = world.before_ns + world.clock.monotonic_ns
        host: Any = world.host
        services = host._services  # noqa: SLF001 - nothing public tells what is left of an agent
        for session in self._asked:
            self._check_cancelled(services.registry.live.get(session))
        for session, since_ns in self._gone.items():
            if session in services.registry.live:
                self.fail(f"{session} was disposed, and is in the registry")
            for suite in world.host.suites:
                if services.alarm.target((suite.name, session)) is not None:
                    self.fail(f"{session} was disposed, and the alarm is set for its {suite.name}")
            if now_ns > since_ns:
                self._check_waits(session)
                self._check_remains(session, world)

    def _disposed(self, happening: Happening) -> None:
        agent, player = happening.agent, self._books.stage.of(happening.agent)
        born = self._asked[agent].pop(0)
        if not self._asked[agent]:
            del self._asked[agent]
        if player.gone < born and not happening.detail["inside"]:
            self.fail(f"the disposal of {agent} has returned, and the agent has not ended")

    def _announced(self, happening: Happening) -> None:
        agent, event = happening.agent, happening.detail["event"]
        if event == "agent-started":
            self._gone.pop(agent, None)
            self._searched.discard(agent)
        elif event == "agent-disposed":
            player = self._books.stage.of(agent)
            if player.is_busy or player.claims:
                self.fail(
                    f"{agent} has ended while it is in the turns {player.turns}, with {len(player.tasks)} maintenance "
                    f"tasks and {len(player.claims)} claims"
                )
            self._gone[agent] = happening.monotonic_ns

    def _check_commit(self) -> None:
        commit = self._books.commit
        for session in () if commit.elsewhere else commit.appended:
            if session in self._gone and session not in commit.created:
                self.fail(f"commit {commit.number} is for {session}, which was disposed")

    def _check_cancelled(self, agent: AgentCore | None) -> None:
        activity = None if agent is None or not agent.ending else agent.activity
        if agent is not None and activity is not None and activity.mark is not None and activity.cause is None:
            self.fail(f"{agent.name} is to be disposed, and what it is doing is not cancelled")

    def _check_remains(self, session: str, world: World) -> None:
        if session in self._searched:
            return
        self._searched.add(session)
        left = remains_of(session, world.tasks())
        if left:
            self.fail(f"{session} was disposed, and tasks of its go on: {left}")

    def _check_waits(self, session: str) -> None:
        player = self._books.stage.of(session)
        left = [wait for wait, (born, _) in player.waits.items() if born <= player.gone]
        if left:
            self.fail(f"{session} was disposed, and the waits {left} until it is idle go on")

    def _check_end(self, *, is_over: bool) -> None:
        """Judge what the end of a process leaves behind; nothing, if it was not the death of it."""
        if is_over:
            for session, player in self._books.stage.players.items():
                if player.is_busy or player.waits:
                    self.fail(
                        f"the host has stopped, and {session} is in the turns {player.turns}, with "
                        f"{len(player.tasks)} maintenance tasks and the waits {list(player.waits)}"
                    )
        self._gone.clear()
        self._searched.clear()
        self._asked.clear()
