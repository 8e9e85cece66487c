"""Standard input and output, kept for the protocol alone."""

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import attrs

_ABOVE_STANDARD = 3


@attrs.frozen
class Wire:
    """The two descriptors of a client; whoever gets them closes them."""

    incoming: int
    outgoing: int


@contextmanager
def own_stdio() -> Generator[Wire]:
    """Give the descriptors of standard input and output to the block, and keep everything else from them.

    Meanwhile standard input is empty and what is written to standard output goes to standard error, whether by this
    process or by one that it starts: a stray word would otherwise be taken for a broken message. Afterwards both are
    as before.

    Raises:
        OSError: one of them is not open.
    """
    sys.stdout.flush()
    kept = Wire(_moved(0), _moved(1))
    try:
        _replace(0, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        _replace(1, _moved(2))
        yield Wire(_moved(kept.incoming), _moved(kept.outgoing))
    finally:
        sys.stdout.flush()
        _replace(0, kept.incoming)
        _replace(1, kept.outgoing)


def _moved(descriptor: int) -> int:
    """Return another descriptor of the same file, which no child process inherits."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD)


def _replace(descriptor: int, by: int) -> None:
    os.dup2(by, descriptor)
    os.close(by)
