"""What agents are seen to be doing: turn functions that run, claims, waits, and which agents are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from whenidle_lab.trace import What

if TYPE_CHECKING:
    from whenidle_lab.invariants.walls import Moment, Walls
    from whenidle_lab.trace import Happening


@attrs.define(eq=False)
class Player:
    """An agent, or the agents that a session had one after the other, in one process."""

    turns: list[int] = attrs.Factory(list[int])
    """Numbers of the turns whose functions run."""
    tasks: list[int] = attrs.Factory(list[int])
    """Numbers of the maintenance tasks of users that run."""
    claims: list[Moment] = attrs.Factory(list["Moment"])
    """When each claim for maintenance began that is held, be it a user's or a delivery's."""
    waits: dict[int, tuple[int, int]] = attrs.Factory(dict[int, tuple[int, int]])
    """Numbers of the waits until it is idle, which agent of the session they wait for, and since when."""
    born: int = 0
    """How often an agent of the session was started."""
    gone: int = 0
    """Which of them were disposed: those up to this number."""
    is_faulted: bool = False
    rested_ns: int = 0
    """When a turn, maintenance task or claim ended last, in monotonic time."""

    @property
    def is_busy(self) -> bool:
        """Whether code of a turn or of a maintenance task runs."""
        return bool(self.turns or self.tasks)

    @property
    def is_gone(self) -> bool:
        """Whether it was disposed, and not restored since."""
        return 0 < self.born == self.gone


class Stage:
    """All agents of the process that lives now."""

    def __init__(self, walls: Walls) -> None:
        self.players: dict[str, Player] = {}
        self.faults: int = 0
        """How often an agent's own code was restarted or given up, in the whole run."""
        self._walls = walls

    def of(self, session: str) -> Player:
        """Return what the agent of a session is doing."""
        player = self.players.get(session)
        if player is None:
            player = self.players[session] = Player()
        return player

    def begin_life(self) -> None:
        """Begin anew: what was in a process has died with it."""
        self.players.clear()

    def work_began(self, happening: Happening) -> None:
        """Enter that a turn or maintenance task began."""
        player, detail = self.of(happening.agent), happening.detail
        if happening.what is What.TURN_BEGAN:
            player.turns.append(detail["turn"])
        else:
            player.tasks.append(detail["claim"])

    def work_ended(self, happening: Happening) -> None:
        """Enter that a turn or maintenance task ended."""
        player, detail = self.of(happening.agent), happening.detail
        player.rested_ns = happening.monotonic_ns
        if happening.what is What.TURN_ENDED:
            player.turns.remove(detail["turn"])
        else:
            player.tasks.remove(detail["claim"])

    def wait_began(self, happening: Happening) -> None:
        """Enter that somebody waits."""
        player = self.of(happening.agent)
        player.waits[happening.detail["wait"]] = (player.born, happening.monotonic_ns)

    def wait_ended(self, happening: Happening) -> None:
        """Enter that a wait is over."""
        self.of(happening.agent).waits.pop(happening.detail["wait"], None)

    def announced(self, happening: Happening) -> None:
        """Enter what the host has announced."""
        player, event = self.of(happening.agent), happening.detail["event"]
        if event == "maintenance-started":
            player.claims.append(self._walls.moment(happening))
        elif event == "maintenance-ended":
            del player.claims[-1:]
            player.rested_ns = happening.monotonic_ns
        elif event == "agent-started":
            player.born += 1
            player.is_faulted = False
        elif event == "agent-disposed":
            player.gone = player.born
        elif event == "agent-faulted":
            player.is_faulted = True
            self.faults += 1
        elif event == "agent-restarted":
            self.faults += 1
