"""A process to be killed: a real host that makes reminders as fast as it can while it delivers others.

It tells of what it has achieved in two ways: a line in a file for each reminder that was acknowledged and
each turn that ran, and a byte in a pipe for each such line and for each thing it is about to begin.
"""

from __future__ import annotations

import logging
import os
import random
from typing import TYPE_CHECKING, Any

import trio

from whenidle_actors.composition import open_host
from whenidle_actors.errors import SessionExists, UnknownSession
from whenidle_actors.offline import open_manager

if TYPE_CHECKING:
    from whenidle_actors.agent import Agent
    from whenidle_actors.host import Host
    from whenidle_actors.turn import Turn

SESSIONS = ("ada", "bob", "cyd", "dan")
LONGEST = 3
"""Seconds after which the last reminder that was made is due."""


class Diary:
    """What was achieved, kept by the kernel from the moment it is written."""

    def __init__(self, path: str, pipe: int | None = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._pipe = pipe

    def write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())
        self.tick()

    def tick(self) -> None:
        if self._pipe is not None:
            os.write(self._pipe, b".")

    def close(self) -> None:
        os.close(self._file)

    async def turn(self, turn: Turn) -> None:
        for message in turn.messages:
            self.write("ran", turn.agent.id, message.id, turn.attempt)
        await trio.lowlevel.checkpoint()


def be_killed(store: str, diary: str, pipe: Any, seed: int) -> None:
    """Run until killed."""
    logging.disable(logging.CRITICAL)
    trio.run(_live, store, Diary(diary, pipe.fileno()), random.Random(seed))  # noqa: S311 - a test that can be repeated


async def _live(store: str, diary: Diary, rng: random.Random) -> None:
    diary.tick()
    async with open_host(store=store, turn=diary.turn) as host, trio.open_nursery() as nursery:
        diary.tick()
        for name in SESSIONS:
            nursery.start_soon(_make_by_tools, await obtain(host, name), diary, rng)
        nursery.start_soon(_make_by_commands, store, diary, rng)


async def obtain(host: Host, name: str) -> Agent:
    """Return the agent of a session, made if need be."""
    try:
        return await host.agent(name)
    except UnknownSession:
        try:
            return await host.create_agent(name)
        except SessionExists:
            return await host.agent(name)


async def _make_by_tools(agent: Agent, diary: Diary, rng: random.Random) -> None:
    while True:
        diary.tick()
        answer = await agent.call_tool("schedule_create", _reminder(rng))
        diary.write("made", agent.id, answer["id"])
        await trio.sleep(rng.random() / 50)


async def _make_by_commands(store: str, diary: Diary, rng: random.Random) -> None:
    async with open_manager(store) as manager:
        while True:
            name = rng.choice(SESSIONS)
            diary.tick()
            answer = await manager.call_tool(name, "schedule_create", _reminder(rng))
            if "id" in answer:  # the host may have held the lock for too long
                diary.write("made", name, answer["id"])
            await trio.sleep(rng.random() / 20)


def _reminder(rng: random.Random) -> dict[str, Any]:
    return {"prompt": "x", "after_seconds": rng.randint(1, LONGEST)}
