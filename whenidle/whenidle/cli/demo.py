"""`whenidle demo`: what whenidle promises, shown in real time on a real file and a real process."""

import signal
import tempfile
from pathlib import Path

import trio

from whenidle.cli.arguments import Json
from whenidle.cli.demo_host import DemoHost
from whenidle.cli.demo_story import Narrator, tell_story
from whenidle.cli.exits import CommandRefused
from whenidle.cli.output import Output
from whenidle_clock import SystemClock

TIME_LIMIT = 100.0
"""Seconds; the story takes about ten where nothing is wrong."""


def demo(*, json: Json = False) -> None:
    """Show in about ten seconds that reminders wait until their agent is idle and survive a killed host.

    Everything happens in a temporary folder. The exit status is 0 only if all that is shown was checked.
    """
    trio.run(_demo, Output.standard(json=json))


async def _demo(output: Output) -> None:
    with tempfile.TemporaryDirectory(prefix="whenidle-demo-") as folder:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_on_sigterm)
            await _play(Path(folder), output)
            nursery.cancel_scope.cancel()


async def _play(folder: Path, output: Output) -> None:
    narrator = Narrator(output, SystemClock())
    with trio.move_on_after(TIME_LIMIT) as limit:
        async with DemoHost.in_folder(folder) as host:
            await tell_story(host, narrator)
    if limit.cancelled_caught:
        raise CommandRefused("demo_failed", f"the demo did not come to its end within {TIME_LIMIT:g} s")


async def _end_on_sigterm() -> None:
    """Leave through the front door, so that the demo's host is ended and its folder removed."""
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            raise CommandRefused("terminated", "the demo was ended by SIGTERM")
