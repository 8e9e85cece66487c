"""What a host does now, to be seen from other processes: `whenidle top`, or a program of your own.

    async with open_host(store="agents.db", turn=turn) as host, trio.open_nursery() as nursery:
        await nursery.start(serve_status, host)
        ...
        nursery.cancel_scope.cancel()

`whenidle run` does so by itself.
"""

from whenidle.status.socket import NoHost, ask_status, serve_status
from whenidle.status.view import AgentView, ClockStep, Coming, Delivered, View

__all__ = ["AgentView", "ClockStep", "Coming", "Delivered", "NoHost", "View", "ask_status", "serve_status"]
