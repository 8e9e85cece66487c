"""`whenidle` on an asyncio loop, uvloop's too: the same host, with the same arguments, calls and promises.

    async with whenidle.aio.open_host(store="agents.db", turn=turn) as host:
        agent = await host.create_agent("ada")
        await agent.call_tool("schedule_create", {"prompt": "Stretch.", "after_seconds": 60})

`turn` is an asyncio coroutine function of one `Turn`; one that is written for trio is marked with `TrioTurn`. Values,
stores, rules, clocks and errors are those of `whenidle`.
"""

from whenidle.aio.agent import Agent, Turn
from whenidle.aio.errors import HostClosed, WorkCancelled, WrongLoop
from whenidle.aio.events import EventStream
from whenidle.aio.host import Host
from whenidle.aio.manager import Manager, open_manager
from whenidle.aio.opening import open_host
from whenidle.aio.portal import open_portal
from whenidle.aio.store import Store
from whenidle.aio.tasks import TaskDesk, Tasks
from whenidle.aio.trio_calls import advance, run_trio, sleep_until
from whenidle.aio.turns import TrioTurn, TurnFunction
from whenidle.portal import Portal, PortalClosed, WrongThread

__all__ = [
    "Agent",
    "EventStream",
    "Host",
    "HostClosed",
    "Manager",
    "Portal",
    "PortalClosed",
    "Store",
    "TaskDesk",
    "Tasks",
    "TrioTurn",
    "Turn",
    "TurnFunction",
    "WorkCancelled",
    "WrongLoop",
    "WrongThread",
    "advance",
    "open_host",
    "open_manager",
    "open_portal",
    "run_trio",
    "sleep_until",
]
