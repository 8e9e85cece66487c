"""Ctrl-C while runs are made."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@contextmanager
def interruptible() -> Generator[Callable[[], bool], None, None]:
    """Take Ctrl-C as a wish to stop, which the function that is given tells; the second one is an interrupt.

    Where Ctrl-C is somebody else's business, as in any but the main thread, it stays that.

    Raises:
        KeyboardInterrupt: it was pressed twice.
    """
    pressed = 0

    def press(_signal: int, _frame: Any) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            raise KeyboardInterrupt

    if not is_ours():
        yield lambda: False
        return
    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed > 0
    except BaseException:
        if pressed > 1:  # raised anywhere, the event loop too, it comes wrapped
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ignored_by_children() -> Generator[None, None, None]:
    """Have processes that are started in the block ignore Ctrl-C, which a terminal sends to them too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def is_ours() -> bool:
    """Return whether Ctrl-C does what Python does by default."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
