"""What is fuzzed: a function of bytes that fails when the product does what it must not."""

from __future__ import annotations

import resource
import sys
import time
from typing import TYPE_CHECKING, Final

import attrs

from whenidle_protocol.json_text import stringify

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from whenidle_protocol.errors import ToolError

CPU_SECONDS: Final = 20.0
"""What one input may take of this thread's processor time. The slowest takes well below a second; what goes on
without end takes more, and what else the machine does is not counted."""
MEMORY_MIB: Final = 256
"""How much one input may raise the highest memory use of the process so far."""
_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""Bytes that `ru_maxrss` counts in."""
LONGEST_MESSAGE: Final = 1_000
"""Characters of a refusal; the closed sets of names in them are the longest part."""


@attrs.frozen
class Target:
    """One entry of the product for what strangers send."""

    name: str
    run: Callable[[bytes], None]
    """Gives an input to the product; raises whatever it should not have raised, or an AssertionError."""
    seeds: tuple[bytes, ...]
    """Inputs to begin with: what is usual, and what is next to a limit."""

    def check(self, data: bytes) -> None:
        """Run, and judge the time and memory it took, too."""
        began, peak = time.thread_time(), _peak_mib()
        self.run(data)
        spent, more = time.thread_time() - began, _peak_mib() - peak
        assert spent < CPU_SECONDS, f"{spent:.1f} s of processor time"
        assert more < MEMORY_MIB, f"{more} MiB of memory"


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT // 2**20


def check_refusal(error: ToolError, codes: Collection[str]) -> None:
    """Check that a refusal has a declared code, and a message that fits a line and is safe to show."""
    assert error.code in codes, error.code
    check_message(error.message)
    stringify(error.answer()).encode()


def check_message(message: str) -> None:
    """Check that a message about somebody's input is one short line without anything that is not seen."""
    assert 0 < len(message) <= LONGEST_MESSAGE, len(message)
    check_line(message)


def check_line(text: str) -> None:
    """Check that a text is one line, and that nothing in it does more than show itself."""
    assert text.isprintable(), ascii(text)


def joined(text: str) -> str:
    """Return a text as JSON keeps it: halves of a character that stand side by side are that character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
