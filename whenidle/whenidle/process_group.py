"""A program in a process group of its own: fed, bounded in time and output, and never left behind."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

import attrs
import trio

DRAIN_SECONDS = 1.0
"""How long to read on after the group is gone: only a program that left the group can still hold the pipe."""

_CHUNK = 65_536


@attrs.frozen
class Captured:
    """The end of one output stream."""

    text: str
    """Decoded as UTF-8, with U+FFFD where the bytes are not UTF-8."""
    total_bytes: int
    """How much the program wrote, kept or not."""
    truncated: bool
    """True when the beginning was dropped because the output is longer than the limit."""


@attrs.frozen
class Finished:
    """How a program ended."""

    status: int
    """Exit status; `-n` when signal n ended it."""
    timed_out: bool
    """True when the time limit, not the program, decided that it was over."""
    stdout: Captured
    stderr: Captured


@attrs.frozen
class Program:
    """What to start, without a shell."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment."""
    cwd: str | None = None
    """None means the caller's own."""


@attrs.frozen
class Limits:
    """What a program may use."""

    seconds: float
    """From its start until it is asked to stop."""
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    output_bytes: int
    """How much of the end of each output stream is kept."""


class _Tail:
    """The last `limit` bytes of a stream, in memory of at most twice that."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._total = 0

    def add(self, chunk: bytes | bytearray) -> None:
        self._total += len(chunk)
        self._kept += chunk[-self._limit :]
        if len(self._kept) > 2 * self._limit:
            del self._kept[: -self._limit]

    def captured(self) -> Captured:
        kept = bytes(self._kept[-self._limit :])
        truncated = self._total > len(kept)
        if truncated:
            kept = _from_character_start(kept)
        return Captured(kept.decode("utf-8", errors="replace"), self._total, truncated)


def _from_character_start(kept: bytes) -> bytes:
    """Drop the tail of a character that the cut went through (at most three continuation bytes)."""
    cut = 0
    while cut < min(3, len(kept)) and kept[cut] & 0xC0 == 0x80:  # noqa: PLR2004 - RFC 3629 section 3
        cut += 1
    return kept[cut:]


class _Group:
    """The process group that `process` leads."""

    def __init__(self, process: trio.Process, grace: float, hurry: trio.Event) -> None:
        self._process = process
        self._grace = grace
        self._hurry = hurry
        self._kill_at: float | None = None
        self._ended = False

    async def end(self) -> None:
        """Ask the group to stop, wait for the grace period at most, then kill what is left.

        Idempotent; a call that was cancelled can be made again and does not begin the grace period anew.
        """
        if self._ended:
            return
        if self._process.returncode is None:
            await self._ask_and_wait()
        self._signal(signal.SIGKILL)
        self._ended = True  # from here on the number may belong to somebody else
        await self._process.wait()

    async def _ask_and_wait(self) -> None:
        if self._kill_at is None:
            self._kill_at = trio.current_time() + self._grace
            self._signal(signal.SIGTERM)
        with trio.move_on_at(self._kill_at):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_in_a_hurry, nursery.cancel_scope)
                await self._process.wait()
                nursery.cancel_scope.cancel()

    async def _cancel_in_a_hurry(self, scope: trio.CancelScope) -> None:
        await self._hurry.wait()
        scope.cancel()

    def _signal(self, number: signal.Signals) -> None:
        # Nobody left in the group, or (where the kernel says so of zombies) nobody we may signal.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def run_group(program: Program, *, stdin: bytes, limits: Limits, hurry: trio.Event) -> Finished:
    """Run `program` in a new session and process group, with `stdin` to read, and return how it ended.

    The run is over when the program itself exits or its time is up; whatever is still alive in its group is
    then killed, so nothing of it outlives the call. At the time limit, and when the call is cancelled, the
    group gets SIGTERM, and SIGKILL after the grace period or as soon as `hurry` is set. Cancellation is
    answered only after the group is dead, that is within the grace period.

    Raises:
        OSError: the program cannot be started.
    """
    process = await trio.lowlevel.open_process(
        list(program.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(program.env),
        cwd=program.cwd,
        start_new_session=True,
    )
    group = _Group(process, limits.grace, hurry)
    stdout, stderr = _Tail(limits.output_bytes), _Tail(limits.output_bytes)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_feed, process.stdin, stdin)
            nursery.start_soon(_drain, process.stdout, stdout)
            nursery.start_soon(_drain, process.stderr, stderr)
            with trio.move_on_after(limits.seconds) as limit:
                await process.wait()
            await group.end()
            nursery.cancel_scope.deadline = trio.current_time() + DRAIN_SECONDS
    finally:
        with trio.CancelScope(shield=True):
            await group.end()
            await _close(process.stdin, process.stdout, process.stderr)
    return Finished(await process.wait(), limit.cancelled_caught, stdout.captured(), stderr.captured())


async def _feed(stream: trio.abc.SendStream | None, data: bytes) -> None:
    if stream is None:  # pragma: no cover - there is a pipe, which the type cannot say
        return
    # A program may exit, or close its input, without reading all of it.
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(data)
    await stream.aclose()


async def _drain(stream: trio.abc.ReceiveStream | None, tail: _Tail) -> None:
    if stream is None:  # pragma: no cover - there is a pipe, which the type cannot say
        return
    while chunk := await stream.receive_some(_CHUNK):
        tail.add(chunk)


async def _close(*streams: trio.abc.AsyncResource | None) -> None:
    for stream in streams:
        if stream is not None:
            await stream.aclose()
