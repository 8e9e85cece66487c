"""Keys as a terminal sends them."""

from __future__ import annotations

import os
import pty
import termios
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.front.processes import PATIENCE
from whenidle.cli.top_keys import pressed, split, unseen

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Return both ends of a terminal: the user's and the program's."""
    user, program = pty.openpty()
    yield user, program
    for end in (user, program):
        with suppress(OSError):
            os.close(end)


@pytest.mark.parametrize(
    ("received", "found"),
    [
        (b"q", ["q"]),
        (b"jk\x1b[A\x1b[B", ["j", "k", "up", "down"]),
        (b"\x1bOA\x1bOB\x1b[5~\x1b[6~", ["up", "down", "page-up", "page-down"]),
        (b"a\x1b[99;5~q", ["a"]),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_bytes_are_keys(received: bytes, found: list[str]) -> None:
    """Characters and arrows; of a sequence that is not known nothing is taken for a key."""
    assert split(received) == found


async def test_keys_come_as_they_are_pressed(terminal: tuple[int, int]) -> None:
    """Without Return, sequences that mean nothing passed over; afterwards the terminal is as it was."""
    user, program = terminal
    before = termios.tcgetattr(program)
    with trio.fail_after(PATIENCE), unseen(program):
        assert not termios.tcgetattr(program)[3] & (termios.ICANON | termios.ECHO)
        os.write(user, b"j\x1b[A")
        assert await pressed(program) == ["j", "up"]
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                assert await pressed(program) == ["q"]

            nursery.start_soon(wait)
            os.write(user, b"\x1b[99;5~")
            await wait_all_tasks_blocked(0.01)
            os.write(user, b"q")
    assert termios.tcgetattr(program)[3] == before[3]


async def test_a_terminal_that_is_gone_ends_the_keys(terminal: tuple[int, int]) -> None:
    """Whoever waits for one gets none, instead of an error."""
    user, program = terminal
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                assert await pressed(program) == []

            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            os.close(user)


async def test_where_there_is_no_terminal_no_key_is_pressed() -> None:
    """A pipe or a file on standard input is left alone."""
    with closing(os.fdopen(os.open(os.devnull, os.O_RDONLY))) as nothing, unseen(nothing.fileno()):
        with trio.move_on_after(0) as scope:
            await pressed(nothing.fileno())
    assert scope.cancelled_caught
