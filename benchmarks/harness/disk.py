"""The disk that stores are measured on, and how fast it makes anything durable."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNC_PEER: Final = "fdatasync of one block"

_BLOCK: Final = 4096

_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder on the disk of the current directory; the system's temporary one may be memory."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".benchmark-") as folder:
        yield Path(folder)


def sync_rate(folder: Path, count: int) -> float:
    """Return how often a second the disk syncs one block that is overwritten: the least a commit can cost."""
    descriptor = os.open(folder / "raw", os.O_RDWR | os.O_CREAT)
    try:
        block = b"x" * _BLOCK
        began = time.perf_counter()
        for _ in range(count):
            os.pwrite(descriptor, block, 0)
            _sync(descriptor)
        return count / (time.perf_counter() - began)
    finally:
        os.close(descriptor)
