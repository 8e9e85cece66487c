"""Who observes a host, and how they are told: nothing is made of an event that nobody hears."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

from whenidle_actors.batch_events import TOLD_BY_COMMITS, events_of, size_of
from whenidle_actors.errors import CommitUncertain, CompositionError
from whenidle_actors.event_stream import EventStream
from whenidle_actors.logs import events_logger, log_event, report
from whenidle_actors.observation import EventKind, HostEvent
from whenidle_actors.probe import Work, unprobed
from whenidle_actors.tracing import Tracing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from whenidle_actors.probe import Note, Probe
    from whenidle_actors.stores.base import Batch, Store
    from whenidle_clock import Clock

    Observer = Callable[[HostEvent], None]

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("whenidle.host")

_ALL = frozenset(EventKind)


class Announcer:
    """The observers of one host.

    Args:
        clock: dates events.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._observers: dict[object, tuple[Observer, frozenset[EventKind]]] = {}
        self._kinds: frozenset[EventKind] = frozenset()
        """What any of them is told of."""
        self._streams: set[EventStream] = set()
        self._sequence = 0
        self._ended = False
        self.tracing: Tracing | None = None
        """The probe that is attached, if there is one."""

    @property
    def heard(self) -> bool:
        """Whether anybody observes the host, or reads of it in the log: else nothing is made of an event."""
        return bool(self._observers) or events_logger.isEnabledFor(logging.INFO)

    def subscribe(self, observer: Observer, kinds: Collection[EventKind] = _ALL) -> Callable[[], None]:
        """Call `observer` with every event of some kinds from now on, and return what ends that.

        What nobody is told of is not counted by `HostEvent.sequence` either.
        """
        key = object()
        self._observers[key] = observer, frozenset(kinds)
        self._count_kinds()

        def leave() -> None:
            self._observers.pop(key, None)
            self._count_kinds()

        return leave

    def _count_kinds(self) -> None:
        self._kinds = frozenset[EventKind]().union(*(kinds for _, kinds in self._observers.values()))

    def stream(self, capacity: int) -> EventStream:
        """Return a new stream of the events from now on; it is at its end if the host has stopped.

        Raises:
            InvalidArgument: the capacity is not a whole number above 0.
        """

        def leave() -> None:
            unsubscribe()
            self._streams.discard(stream)

        stream = EventStream(capacity, leave)
        unsubscribe = self.subscribe(stream.put)
        self._streams.add(stream)
        if self._ended:
            stream.end()
        return stream

    def announce(self, kind: EventKind, session_id: str, **detail: Any) -> None:
        """Tell every observer; what one of them raises is logged and stops nobody else."""
        is_logged = events_logger.isEnabledFor(logging.INFO)
        if kind not in self._kinds and not is_logged:
            return
        self._sequence += 1
        event = HostEvent(kind, session_id, self._clock.now(), detail, self._sequence)
        observers = tuple(self._observers.values())
        for observer, kinds in ((log_event, _ALL), *observers) if is_logged else observers:
            if kind not in kinds:
                continue
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 - an observer is nobody's business but its own
                report(
                    logger,
                    logging.ERROR,
                    "observer-failed",
                    "an observer failed on %s of session %s",
                    kind.value,
                    session_id,
                    kind=kind.value,
                    session=session_id,
                    error=error,
                )

    def end(self) -> None:
        """Announce that the host has stopped, and let every stream end."""
        if not self._ended:
            self._ended = True
            self.announce(EventKind.HOST_STOPPED, "")
            for stream in tuple(self._streams):
                stream.end()

    async def traces(self, store: Store, schedules: Sequence[tuple[str, str]]) -> list[str | None]:
        """Return the traces in which schedules were created; see `Tracing.traces`."""
        return [] if self.tracing is None else await self.tracing.traces(store, schedules)

    @property
    def attended(self) -> bool:
        """Whether there is an observer, a reader of the log or a probe."""
        return self.tracing is not None or self.heard

    @property
    def attends_commits(self) -> bool:
        """Whether one of them is told of commits, or of what they changed."""
        return self.tracing is not None or self._hears_commits()

    def _hears_commits(self) -> bool:
        return not self._kinds.isdisjoint(TOLD_BY_COMMITS) or events_logger.isEnabledFor(logging.INFO)

    def attach(self, probe: Probe) -> Callable[[], None]:
        """Have `probe` wrap all work that begins from now on, and return what ends that.

        Raises:
            CompositionError: the host has a probe.
        """
        if self.tracing is not None:
            raise CompositionError("this host has a probe already; take that one off first")
        mine = self.tracing = Tracing(probe)

        def detach() -> None:
            if self.tracing is mine:
                self.tracing = None

        return detach

    def work(self, kind: Work, session_id: str, **facts: Any) -> AbstractContextManager[Note]:
        """Return what is entered around a piece of work; see `Probe.work`."""
        return unprobed() if self.tracing is None else self.tracing.probe.work(kind, session_id, facts)

    def carry(self, operation: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Return `operation` as a part of the present work; see `Probe.carry`."""
        return operation if self.tracing is None else self.tracing.probe.carry(operation)

    async def commit(self, store: Store, batch: Batch) -> None:
        """Commit a batch as `Store.commit`, and tell what it was, how long it took and what it holds."""
        began = self._clock.monotonic()
        with self.work(Work.COMMIT, _session_of(batch), **_counts(batch)):
            try:
                await store.commit(batch)
            except Exception as error:
                self._tell_of(batch, error, began)
                raise
        self._tell_of(batch, None, began)

    async def commit_all(self, store: Store, batches: Sequence[Batch]) -> list[Exception | None]:
        """Commit batches as `Store.commit_all`, and tell of each; the work is that of all, and no probe sees it."""
        began = self._clock.monotonic()
        answers = await store.commit_all(batches)
        for batch, error in zip(batches, answers, strict=True):
            self._tell_of(batch, error, began)
        return answers

    def _tell_of(self, batch: Batch, error: Exception | None, began: float) -> None:
        """Tell of a commit that was begun then, and what it changed."""
        if not self._hears_commits():
            return
        session_id, millis = _session_of(batch), round((self._clock.monotonic() - began) * 1000, 3)
        if error is not None:
            uncertain = isinstance(error, CommitUncertain)
            self.announce(
                EventKind.COMMIT_FAILED, session_id, error=type(error).__name__, uncertain=uncertain, millis=millis
            )
            return
        self.announce(EventKind.COMMITTED, session_id, **_counts(batch), bytes=size_of(batch), millis=millis)
        for kind, of_session, detail in events_of(batch):
            self.announce(kind, of_session, **detail)


def _session_of(batch: Batch) -> str:
    sessions = [append.session_id for append in batch.appends] + [header.id for header in batch.created]
    return sessions[0] if sessions else ""


def _counts(batch: Batch) -> dict[str, int]:
    return {
        "events": sum(len(append.records) for append in batch.appends),
        "sessions": len(batch.created),
        "tasks": len(batch.tasks),
        "receipts": len(batch.receipts),
    }
