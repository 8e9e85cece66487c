"""What `whenidle run` tells while it runs: lines for people, documents for programs.

Events come from inside the host, which must never wait for whoever reads the output: a pager that is not
scrolled, a stopped terminal. They are put aside and written by a thread; if too many wait, the oldest go and
a line says how many.
"""

import logging
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

import attrs
import trio

from whenidle.cli.event_lines import TEXT_LIMIT
from whenidle.cli.output import Output
from whenidle.cli.text import shortened, visible
from whenidle.command_template import CommandError
from whenidle_actors.host import Host
from whenidle_actors.logs import Shown, described
from whenidle_actors.observation import EventKind, HostEvent
from whenidle_clock import Clock, format_instant

BACKLOG = 10_000
"""Happenings that wait for a slow reader before the oldest are dropped."""

_INNER = frozenset(
    {
        EventKind.COMMITTED,
        EventKind.COMMIT_FAILED,
        EventKind.MAINTENANCE_STARTED,
        EventKind.MAINTENANCE_ENDED,
        EventKind.SESSION_CHANGED_ELSEWHERE,
        EventKind.TASK_CHANGED_ELSEWHERE,
        EventKind.TURN_NOTED,
        EventKind.HOST_STOPPED,
    }
)
"""What is part of something else that is told, or is told in other words."""

TICK_SECONDS = 1.0
LAST_WORDS_SECONDS = 1.0
"""How long the end waits for a reader who is slow."""


@attrs.frozen
class Happening:
    """One thing to tell."""

    at: str
    """Wall instant in wire form, UTC."""
    kind: str
    session: str | None = None
    detail: Mapping[str, object] = attrs.Factory(dict[str, object])

    def document(self) -> dict[str, object]:
        """Return it for programs: `{at, event, session?, ...detail}`."""
        head: dict[str, object] = {"at": self.at, "event": self.kind}
        if self.session is not None:
            head["session"] = self.session
        return {**head, **self.detail, **head}

    def line(self) -> str:
        """Return it for people."""
        facts = ", ".join(f"{visible(key)} {_fact(fact)}" for key, fact in self.detail.items() if fact is not None)
        what = self.kind.replace("-", " ")
        return "  ".join(part for part in (self.at, visible(self.session or ""), what, facts) if part)


class Reporter(ABC):
    """Tells of a host as long as it runs: `started`, then `watch` beside it, and `close` in any case."""

    def __init__(self, output: Output, clock: Clock) -> None:
        self._output = output
        self._clock = clock
        self._waiting: deque[Happening] = deque(maxlen=BACKLOG)
        self._dropped = 0
        self._closed = False
        self._pen = threading.Lock()
        self._news = trio.Event()

    def started(self, host: Host) -> None:
        """Say that the host runs."""
        self.tell("host-started", store=host.store.name, pid=os.getpid())

    def event(self, event: HostEvent) -> None:
        """Take what happened from the host; how it came about is left to `Host.events`."""
        if event.kind in _INNER:
            return
        detail = {key: _plain(fact) for key, fact in event.detail.items()}
        self._put(Happening(format_instant(event.at), event.kind, event.session_id, detail))

    def tell(self, kind: str, **detail: object) -> None:
        """Take what happened to the host itself."""
        self._put(Happening(format_instant(self._clock.now()), kind, None, detail))

    async def watch(self, host: Host | None) -> None:
        """Write what happens until cancelled.

        Raises:
            BrokenPipeError: nobody reads the output any more.
        """
        while True:
            with trio.move_on_after(TICK_SECONDS):
                await self._news.wait()
            self._news = trio.Event()
            if host is not None:
                await self.look(host)
            # Abandoned when cancelled: whoever does not read must not keep the host from stopping.
            await trio.to_thread.run_sync(self._write_waiting, abandon_on_cancel=True)

    async def look(self, host: Host) -> None:  # noqa: B027 - a hook
        """Look at what has no event of its own, about once a second; a line reporter has no need to."""

    def close(self) -> None:
        """Write what is left to tell; also after a failure, and before `started`."""
        # A reader who holds up the thread must not hold us up too.
        if self._pen.acquire(timeout=LAST_WORDS_SECONDS):
            try:
                self.write(self._taken())
                self.finish()
            finally:
                self._closed = True
                self._pen.release()

    def finish(self) -> None:  # noqa: B027 - a hook
        """Put away what `started` has set up; nothing is written after it."""

    @abstractmethod
    def write(self, news: Sequence[Happening]) -> None:
        """Write `news`; called from changing threads, by one at a time."""

    def _put(self, happening: Happening) -> None:
        self._dropped += len(self._waiting) == BACKLOG
        self._waiting.append(happening)
        self._news.set()

    def _taken(self) -> list[Happening]:
        taken = list(self._waiting)
        self._waiting.clear()
        if self._dropped:
            taken.insert(0, Happening(format_instant(self._clock.now()), "not-shown", None, {"count": self._dropped}))
            self._dropped = 0
        return taken

    def _write_waiting(self) -> None:
        with self._pen:
            if not self._closed:
                self.write(self._taken())


class LineReporter(Reporter):
    """Writes a line for each thing that happens, or with `--json` a document."""

    def write(self, news: Sequence[Happening]) -> None:
        """Write each of `news` and flush."""
        for happening in news:
            if self._output.json:
                self._output.document(happening.document())
            else:
                self._output.say(happening.line())
        self._output.flush()


class LogToReporter(logging.Handler):
    """Passes warnings and errors of the host's log on, one line each and without tracebacks."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the reporter; a failed command is left out, since its turn ends with the same words."""
        cause = record.exc_info[1] if record.exc_info else None
        if issubclass(cause.kind if isinstance(cause, Shown) else type(cause), CommandError):
            return
        detail = {"level": record.levelname.lower(), "message": record.getMessage()}
        if cause is not None:
            detail["cause"] = str(cause) if isinstance(cause, Shown) else described(cause)
        self._reporter.tell("log", **detail)


def _fact(fact: object) -> str:
    words = cast("Sequence[object]", fact) if isinstance(fact, list) else (fact,)
    return shortened(" ".join(map(str, words)), TEXT_LIMIT)


def _plain(fact: object) -> object:
    """Return `fact` as JSON takes it."""
    if isinstance(fact, list | tuple):
        return [_plain(member) for member in cast("Sequence[object]", fact)]
    return fact if isinstance(fact, str | int | float | bool | None) else str(fact)
