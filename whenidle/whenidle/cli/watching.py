"""Waiting for what other processes append to a log."""

import trio

from whenidle_actors.stores.base import SessionSlice, Store

POLL_SECONDS = 0.2
"""How often a log is looked at. A store reports foreign changes to hosts only; a read of nothing is cheap."""


async def appended(store: Store, session: str, start: int) -> SessionSlice:
    """Wait until the log of `session` has an event numbered `start`, and return it and those behind it.

    Cancelling it loses nothing.

    Raises:
        StoreError: as `Store.read`.
    """
    while True:
        part = await store.read(session, start)
        if part.records:
            return part
        await trio.sleep(POLL_SECONDS)
