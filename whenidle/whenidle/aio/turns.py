"""Turn functions of an asyncio host, and how its runtime, which is trio's, runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs

from whenidle.aio.agent import Turn
from whenidle.aio.errors import WorkCancelled
from whenidle.aio.work import Work
from whenidle.command_agent import CommandAgent
from whenidle_actors.errors import InvalidArgument

if TYPE_CHECKING:
    import asyncio

    from whenidle.aio.guest import Guest
    from whenidle_actors import turn as trio_turn
    from whenidle_actors.turn import TurnFunction as TrioTurnFunction

T = TypeVar("T")

TurnFunction: TypeAlias = Callable[[Turn], Awaitable[object]]
"""The host's agent, as an asyncio coroutine function; see `whenidle.TurnFunction`."""


@attrs.frozen
class TrioTurn:
    """Marks a turn function that is written for trio, such as a `CommandAgent`: `turn=TrioTurn(CommandAgent(...))`.

    It gets a `whenidle.Turn` and runs in trio: nothing in it may await what is asyncio's.
    """

    function: TrioTurnFunction


def check_kind(turn: object) -> None:
    """Return unless a turn function is plainly one for trio, and not marked so.

    Raises:
        InvalidArgument: it is.
    """
    if isinstance(turn, CommandAgent):
        raise InvalidArgument("a CommandAgent is a turn function for trio: write turn=TrioTurn(CommandAgent(...))")


class TurnRunner:
    """Runs the turns of one host in asyncio, each in a task of its own.

    Args:
        guest: where the host runs.
        function: the asyncio turn function.
        owner: the asyncio task that opened the host.
    """

    def __init__(self, guest: Guest, function: TurnFunction, owner: asyncio.Task[Any]) -> None:
        self._guest = guest
        self._function = function
        self._owner = owner
        self._running: set[Work[object]] = set()

    async def __call__(self, turn: trio_turn.Turn) -> None:
        """Run one turn."""
        work = Work(self._guest, partial(self._function, Turn(self._guest, turn)), _name(turn))
        self._running.add(work)
        try:
            await work.run()
        except WorkCancelled:
            if work.was_cancelled_outside and self._owner.cancelling():
                _interrupt(turn, "the event loop stops")
            raise
        except (KeyboardInterrupt, SystemExit) as error:
            # Asyncio has let it out of the loop, as it does for any task: there it ends the program.
            _interrupt(turn, f"{type(error).__name__} in a turn")
            raise WorkCancelled(f"{_name(turn)} raised {type(error).__name__}") from error
        finally:
            self._running.remove(work)

    def cancel_again(self) -> None:
        """Cancel those once more that were cancelled and go on all the same: the host stops."""
        for work in self._running:
            work.cancel_again()


def _name(turn: trio_turn.Turn) -> str:
    return f"turn {turn.number} of {turn.agent.id}"


def _interrupt(turn: trio_turn.Turn, cause: str) -> None:
    """Have the turn end as interrupted, so that its messages are delivered again when the agent is restored."""
    turn.agent.begin_disposal(cause, interrupt=True)
