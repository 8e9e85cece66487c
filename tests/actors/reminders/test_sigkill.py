"""A real host on a real file, killed for real (SPEC 4; CASES 36)."""

from __future__ import annotations

import multiprocessing
import os
import random
from typing import TYPE_CHECKING

import pytest
import trio

from whenidle_actors.composition import open_host
from whenidle_actors.stores.sqlite import SqliteStore

from .logs import Ledger, audit
from .victim import SESSIONS, Diary, be_killed, obtain

if TYPE_CHECKING:
    from pathlib import Path

    from whenidle_actors.host import Host

MOST_TICKS = 200
"""The longest life of a victim, in things it begins or achieves."""

victims = multiprocessing.get_context("forkserver")
victims.set_forkserver_preload([be_killed.__module__])


def kill_one(store: Path, diary: Path, rng: random.Random) -> None:
    """Start a victim, and kill it when it has come as far as `rng` says."""
    ours, theirs = victims.Pipe(duplex=False)
    victim = victims.Process(target=be_killed, args=(str(store), str(diary), theirs, rng.getrandbits(32)))
    victim.start()
    theirs.close()
    ticks, last = 0, rng.randint(1, MOST_TICKS)
    while ticks < last:
        told = os.read(ours.fileno(), 4096)
        assert told, "the victim ended by itself"
        ticks += len(told)
    victim.kill()
    victim.join()
    ours.close()
    victim.close()


async def settle(store: Path, diary: Diary) -> dict[str, Ledger]:
    """Run a host until nothing is left to deliver or to run, and return the audited accounts."""
    async with open_host(store=SqliteStore(store), turn=diary.turn) as host:
        for name in SESSIONS:
            await obtain(host, name)
        with trio.fail_after(60):
            while not is_done(host):  # noqa: ASYNC110 - a real host, watched from outside
                await trio.sleep(0.05)
        assert await host.store.check() == []
        return {name: await audit(host.store, name) for name in SESSIONS}


def is_done(host: Host) -> bool:
    """Return whether nothing is left to come due or to run."""
    statistics = [agent.statistics() for agent in host.agents]
    return all(
        agent.status == "idle" and (about.reminders, about.pending) == (0, 0)
        for agent, about in zip(host.agents, statistics, strict=True)
    )


@pytest.mark.timeout(900)
def test_a_host_that_is_killed_again_and_again_loses_and_repeats_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every reminder that was acknowledged is delivered once, every message is run, and the file is sound."""
    store, path = tmp_path / "test.store", tmp_path / "diary"
    kills = request.config.getoption("--kills")
    rng = random.Random(36)  # noqa: S311 - a test that can be repeated
    for _ in range(kills):
        kill_one(store, path, rng)
    diary = Diary(str(path))
    accounts = trio.run(settle, store, diary)
    diary.close()
    lines = [line.split() for line in path.read_text().splitlines()]
    made = [(words[1], words[2]) for words in lines if words[0] == "made"]
    ran = {(words[1], words[2]) for words in lines if words[0] == "ran"}
    assert len(made) >= 2 * kills
    assert len(set(made)) == len(made)
    for name, ledger in accounts.items():
        assert {identity for session, identity in made if session == name} <= ledger.created.keys()
        assert sorted(identity for identity, _ in ledger.delivered) == sorted(ledger.created)
        assert {(name, delivery.message) for delivery in ledger.deliveries} <= ran
    assert sum(len(ledger.deliveries) for ledger in accounts.values()) >= len(made)
