"""How full the mailboxes of a host are, from round to round: for pictures only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whenidle_actors.mailbox import Mailbox

if TYPE_CHECKING:
    from whenidle_actors.host import Host


class Depths:
    """Knows the number of messages in each agent's mailbox, in one life of a process."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def changes(self, host: Host) -> list[tuple[str, int]]:
        """Return the agents whose number is another one than the last time, with it."""
        now = dict.fromkeys(self._known, 0) | {agent.id: _depth(agent) for agent in host.agents}
        changed = [(agent, depth) for agent, depth in now.items() if depth != self._known.get(agent, 0)]
        self._known = now
        return changed


def _depth(mailbox: Mailbox) -> int:
    account = Mailbox.statistics(mailbox)  # of an agent there would be more to tell, which is not free
    return account.depth + account.system_depth
