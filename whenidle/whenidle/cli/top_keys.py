"""Keys of a terminal, one at a time and unseen."""

import os
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager

import trio

ARROWS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[5~": "page-up",
    b"\x1b[6~": "page-down",
}
_LONGEST = 64
"""Bytes read at once: what a person types, or a paste that is then read on."""


@contextmanager
def unseen(descriptor: int) -> Generator[None]:
    """Have keys reach the program at once and not the screen; Ctrl-C works as usual. Puts back what was."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


async def pressed(descriptor: int) -> list[str]:
    """Wait for keys and return them: characters, and names of `ARROWS`; none if the terminal is gone.

    Where there is no terminal to read from, no key is ever pressed.
    """
    if not os.isatty(descriptor):
        await trio.sleep_forever()
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        try:
            received = os.read(descriptor, _LONGEST)
        except OSError:  # the terminal was closed
            return []
        if not received:
            return []
        if keys := split(received):
            return keys


def split(pressed: bytes) -> list[str]:
    """Return the keys that bytes of a terminal stand for; sequences that are not known are passed over."""
    found: list[str] = []
    rest = pressed
    while rest:
        arrow = next((sequence for sequence in ARROWS if rest.startswith(sequence)), None)
        if arrow is not None:
            found.append(ARROWS[arrow])
            rest = rest[len(arrow) :]
        elif rest.startswith(b"\x1b"):
            break
        else:
            found.append(rest[:1].decode("ascii", "replace"))
            rest = rest[1:]
    return found
