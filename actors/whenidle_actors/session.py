"""One session: its log in the store, and the fold of it in memory.

Truth is the log. The fold beside it is kept incrementally and never outlives a doubt: when a
commit is refused, withdrawn or uncertain, the fold is dropped, and the next use reads the log
back before it decides anything (SPEC 3.2).

A session has one user at a time: the actor that drives it, or a management command.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import attrs
import trio

from whenidle_actors.announcer import Announcer
from whenidle_actors.errors import InvalidArgument, SequenceConflict, SessionExists, StoreDamaged
from whenidle_actors.stores.base import IDLE_INDEX, Append, Batch, SessionIndex
from whenidle_protocol import session_state
from whenidle_protocol.errors import CorruptLog
from whenidle_protocol.events import encode
from whenidle_protocol.recurrence.failures import quoted
from whenidle_protocol.session_state import SessionState, apply_record, check_inherited, replay

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from whenidle_actors.stores.base import SessionHeader, SessionSlice, Store
    from whenidle_actors.stores.task_rows import Receipt, TaskWrite
    from whenidle_clock import Clock
    from whenidle_protocol.events import Event, EventRecord

T = TypeVar("T")

MAX_ID_LENGTH = 128
"""Characters of a session id: enough for a UUID with a prefix, short enough for a log line."""

_TURN_BITS = 32

_PIECE = 500
"""Events folded between two checkpoints: some milliseconds of work."""

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._:-]*", re.ASCII)


def check_session_id(session_id: object) -> str:
    """Return `session_id` if it can name a session.

    Raises:
        InvalidArgument: it is empty, longer than 128 characters, or has a character outside
            `A-Z a-z 0-9 . _ : -`, or a leading dot. The message never repeats a long id.
    """
    if not isinstance(session_id, str) or not session_id:
        raise InvalidArgument("a session id is a non-empty string, for example 'support-42'")
    if len(session_id) > MAX_ID_LENGTH:
        raise InvalidArgument(f"a session id has at most {MAX_ID_LENGTH} characters; this one has {len(session_id)}")
    if _ID.fullmatch(session_id) is None:
        raise InvalidArgument(
            f"session id {quoted(session_id)}: "
            "use only A-Z a-z 0-9 . _ : - and no leading dot, for example 'support-42'"
        )
    return session_id


def check_message(text: str, limit: int) -> str:
    """Return `text` if it can be a message of at most `limit` bytes of UTF-8.

    Raises:
        InvalidArgument: it cannot.
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"a message is a string, not {type(text).__name__}")
    if len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit:
        raise InvalidArgument(f"the message is longer than the limit of {limit} bytes of UTF-8")
    return text


@attrs.frozen
class Journal:
    """Where the sessions of one host are kept, and the clock that dates their events."""

    store: Store
    clock: Clock
    fixed_rate: bool = True
    """Whether reminder logs may hold `every` records (SPEC 5.4)."""
    announcer: Announcer = attrs.field(
        default=attrs.Factory(lambda self: Announcer(self.clock), takes_self=True), init=False, eq=False, repr=False
    )
    """Who hears of what is committed."""

    def commit_all(self, batches: Sequence[Batch]) -> Awaitable[list[Exception | None]]:
        """Commit as `Store.commit_all`, seen by whoever attends to the host."""
        if self.announcer.attends_commits:
            return self.announcer.commit_all(self.store, batches)
        return self.store.commit_all(batches)

    def commit(self, batch: Batch) -> Awaitable[None]:
        """Commit as `Store.commit`, seen by whoever attends to the host."""
        if self.announcer.attends_commits:
            return self.announcer.commit(self.store, batch)
        return self.store.commit(batch)


@attrs.frozen
class Beside:
    """What is committed together with a session's events."""

    tasks: tuple[TaskWrite, ...] = ()
    receipts: tuple[Receipt, ...] = ()


NOTHING_BESIDE = Beside()


@attrs.frozen
class Draft:
    """A commit of one session that is yet to be made."""

    batch: Batch
    state: SessionState
    """The fold when it is durable."""


def fold(header: SessionHeader, records: Iterable[EventRecord], *, fixed_rate: bool = True) -> SessionState:
    """Return the state that `records`, a whole log, lead to.

    Raises:
        StoreDamaged: an event cannot be what was written, or cannot follow the ones before it.
    """
    try:
        return replay(records, seed_length=header.seed_length, fixed_rate=fixed_rate)
    except CorruptLog as error:
        raise StoreDamaged(f"session {header.id!r}: {error}") from error


async def _fold_gently(whole: SessionSlice, journal: Journal) -> SessionState:
    """Fold a whole log, however long, without holding the loop (SPEC 2.9); raises like `fold`."""
    state = SessionState(seed_length=whole.header.seed_length, fixed_rate=journal.fixed_rate)
    await _apply_gently(state, whole)
    return state


async def _apply_gently(state: SessionState, part: SessionSlice) -> None:
    try:
        for number, record in enumerate(part.records, 1):
            apply_record(state, record)
            if number % _PIECE == 0:
                await trio.lowlevel.checkpoint()
        check_inherited(state)
    except CorruptLog as error:
        raise StoreDamaged(f"session {part.header.id!r}: {error}") from error


def index_of(state: SessionState) -> SessionIndex:
    """Return what the store must know of a session in `state` to have a host wake it."""
    due_millis, runnable = session_state.index_of(state)
    return IDLE_INDEX if due_millis is None and not runnable else SessionIndex(due_millis, runnable)


def opening(
    journal: Journal, header: SessionHeader, decision: Callable[[SessionState], tuple[Sequence[Event], T]]
) -> tuple[Append, T]:
    """Return the first events of a session that is yet to be made, as `decision` makes them, and its answer.

    They belong into the commit that creates the session, so that there never is one without them.
    """
    state = SessionState(fixed_rate=journal.fixed_rate)
    events, answer = decision(state)
    at_millis = journal.clock.now_millis()
    for event in events:
        state.apply(event)
    records = tuple(encode(event, at_millis) for event in events)
    return Append(header.id, 0, records, index_of(state)), answer


class Session:
    """A session's log and its fold. Not for two tasks at once: an actor's mailbox is its lock."""

    __slots__ = ("_fold", "_journal", "header")

    def __init__(self, journal: Journal, header: SessionHeader, state: SessionState) -> None:
        self._journal = journal
        self.header: SessionHeader = header
        self._fold: SessionState | int | None = state

    @classmethod
    async def load(cls, journal: Journal, session_id: str) -> Session:
        """Read a session from the store and fold it.

        Raises:
            UnknownSession: there is none of that id.
            StoreDamaged: the log cannot be folded, or the store cannot be read.
        """
        return await cls.of(journal, await journal.store.read(session_id))

    @classmethod
    async def of(cls, journal: Journal, whole: SessionSlice) -> Session:
        """Fold a session that was read as a whole.

        Raises:
            StoreDamaged: the log cannot be folded.
        """
        return cls(journal, whole.header, await _fold_gently(whole, journal))

    @property
    def now_millis(self) -> int:
        """The wall clock now, in milliseconds since the epoch."""
        return self._journal.clock.now_millis()

    @property
    def confirmed_state(self) -> SessionState | None:
        """The fold, or None while it is in doubt and `confirm` has to read it back."""
        if isinstance(self._fold, int):
            length, turns = divmod(self._fold, 1 << _TURN_BITS)
            self._fold = SessionState.blank(
                length=length,
                turns=turns,
                seed_length=self.header.seed_length,
                fixed_rate=self._journal.fixed_rate,
            )
        return self._fold

    def drop(self) -> None:
        """Forget the fold; the next use reads the log back."""
        self._fold = None

    def rest(self) -> None:
        """Keep a fold that holds nothing but its two counters as one number, until it is used again.

        Most agents of a host are idle, without messages and reminders: a third of what such an agent takes
        would be the empty fold.
        """
        fold = self._fold
        if isinstance(fold, SessionState) and fold.is_blank:
            self._fold = fold.length << _TURN_BITS | fold.turns

    async def confirm(self) -> SessionState:
        """Return the fold of what is durably in the log, reading it back if it is in doubt.

        This is the durability preflight of SPEC 5.6. Without a doubt it is a plain return.

        Raises:
            StoreError: the store cannot be read now; the doubt stays.
        """
        state = self.confirmed_state
        if state is None:
            whole = await self._journal.store.read(self.header.id)
            state = self._fold = await _fold_gently(whole, self._journal)
        return state

    async def catch_up(self) -> SessionState:
        """Fold what other processes have appended since, and return the state.

        Raises:
            StoreError: as `confirm`.
        """
        state = await self.confirm()
        tail = await self._journal.store.read(self.header.id, state.length)
        self._fold = None
        await _apply_gently(state, tail)
        self._fold = state
        return state

    async def decide(
        self, decision: Callable[[SessionState], tuple[Sequence[Event], T]], *, beside: Beside = NOTHING_BESIDE
    ) -> T:
        """Commit the events that `decision` makes of the state, and what goes `beside` them; return its answer.

        `decision` is pure. It may be asked again, of a newer state, when another process appended in
        between. Without events nothing is written. The events are durable when this returns.

        Raises:
            StoreError: as `Store.commit`; what is true is read back before the next decision.
        """
        while True:
            state = await self.confirm()
            events, answer = decision(state)
            if not events:
                return answer
            try:
                draft = self._draft(state, events, beside)
                await self._journal.commit(draft.batch)
            except SequenceConflict:
                continue
            self.keep(draft)
            return answer

    def draft(self, decision: Callable[[SessionState], tuple[Sequence[Event], object]], beside: Beside) -> Draft:
        """Return what `decide` would commit, to be committed together with what others draft.

        The session is in doubt until it is told with `keep` that the draft is durable. Only without a doubt, and
        for a decision that makes events.
        """
        state = self.confirmed_state
        assert state is not None  # noqa: S101 - see above
        events, _ = decision(state)
        return self._draft(state, events, beside)

    def keep(self, draft: Draft) -> None:
        """Take note that a draft, the last one that was made, is durable."""
        self._fold = draft.state

    def _draft(self, state: SessionState, events: Sequence[Event], beside: Beside) -> Draft:
        # The fold runs ahead of the commit, so that the index can be part of it and an event that may
        # not follow never reaches the log. Whatever goes wrong, the fold is dropped and read back.
        self._fold = None
        expected = state.length
        at_millis = self.now_millis
        records = tuple(encode(event, at_millis) for event in events)
        healthy = state.reminders.corrupt is None
        for event in events:
            state.apply(event)
        if healthy and state.reminders.corrupt is not None:
            raise state.reminders.corrupt
        append = Append(self.header.id, expected, records, index_of(state))
        return Draft(Batch((append,), tasks=beside.tasks, receipts=beside.receipts), state)


class SessionToBe(Session):
    """A session that does not exist yet: the first decision creates it, in the commit of its events."""

    __slots__ = ()

    async def decide(
        self, decision: Callable[[SessionState], tuple[Sequence[Event], T]], *, beside: Beside = NOTHING_BESIDE
    ) -> T:
        """Create the session with the events that `decision` makes of an empty one, and return its answer.

        If somebody else has created it meanwhile, decide as usual of what is there.

        Raises:
            StoreError: as `Store.commit`.
        """
        append, answer = opening(self._journal, self.header, decision)
        try:
            await self._journal.commit(Batch((append,), (self.header,), beside.tasks, beside.receipts))
        except SessionExists:
            found = await Session.load(self._journal, self.header.id)
            return await found.decide(decision, beside=beside)
        return answer
