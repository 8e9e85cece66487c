"""A loop that is closed by hand while hosts are open on it: nothing hangs, and what comes next is told what to do."""

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, gc, os, sys, threading
import uvloop
from whenidle import MemoryStore, aio, errors

async def turn(_):
    pass

loop = {loop}.new_event_loop()
opening, opening_portal = aio.open_host(store={store}, turn=turn), aio.open_portal()
host = loop.run_until_complete(opening.__aenter__())
portal = loop.run_until_complete(opening_portal.__aenter__())
loop.close()

def from_a_thread():
    try:
        portal.call(host.create_agent, "ada")
    except aio.PortalClosed as error:
        print("portal:", error)

async def attempt(opening):
    try:
        async with opening:
            print("opened")
    except errors.CompositionError as error:
        print(error)

def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

in_a_thread(from_a_thread)
before = None
for _ in range(3):
    asyncio.run(attempt(aio.open_host(store=MemoryStore(), turn=turn)))
    asyncio.run(attempt(aio.open_manager(MemoryStore())))
    gc.collect()
    now = len(os.listdir("/proc/self/fd")), threading.active_count()
    assert before in (None, now), (before, now)
    before = now
in_a_thread(lambda: asyncio.run(attempt(aio.open_host(store=MemoryStore(), turn=turn))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it counts descriptors")
@pytest.mark.parametrize("store", ["MemoryStore()", "sys.argv[1]"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_the_thread_is_barred_to_hosts_and_the_error_says_what_to_do(loop: str, store: str, tmp_path: object) -> None:
    """Nothing is left of any attempt; calls from threads fail; another thread is free, and so is the exit."""
    script = SCRIPT.format(loop=loop, store=store)
    command = [sys.executable, "-W", "error", "-c", script, f"{tmp_path}/test.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    portal, *refusals, last = done.stdout.splitlines()
    assert portal == "portal: the loop of this portal has ended, and its block was not left before"
    assert len(refusals) == 6
    assert {refusal.partition(":")[0] for refusal in refusals} == {
        "an event loop of this thread was closed while hosts were open on it"
    }
    assert "open hosts in another thread, and leave their `async with` blocks before a loop is closed" in refusals[0]
    assert last == "opened"
    assert done.stderr == ""
