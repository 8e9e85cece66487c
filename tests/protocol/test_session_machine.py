from __future__ import annotations

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from whenidle_protocol import inbox as inboxes
from whenidle_protocol.events import (
    Event,
    EventRecord,
    Lane,
    Message,
    MessageReplaced,
    MessagesRemoved,
    Outcome,
    Source,
    StepClaimed,
    TurnAborted,
    TurnEnded,
    TurnStarted,
    encode,
)
from whenidle_protocol.session_state import SessionState, replay

from .observing import seen


class SessionMachine(RuleBasedStateMachine):
    """The state against plain lists; every step is also replayed from the log at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.state = SessionState()
        self.log: list[EventRecord] = []
        self.lanes: dict[Lane, list[Message]] = {Lane.NEXT_TURN: [], Lane.NEXT_STEP: []}
        self.open: list[Message] | None = None
        self.again: list[Message] = []
        self.attempt = 1
        self.turns = 0
        self.awake = False
        self.cancelled = False

    def do(self, event: Event) -> None:
        self.state.apply(event)
        self.log.append(encode(event, 0))

    def pending(self) -> list[str]:
        return [message.id for lane in self.lanes.values() for message in lane]

    @rule(lane=st.sampled_from(Lane), wake=st.booleans())
    def insert(self, lane: Lane, wake: bool) -> None:
        message = Message(f"m{len(self.log)}", lane, wake, "x", Source.USER)
        self.do(message)
        self.lanes[lane].append(message)
        self.awake = self.awake or wake

    @precondition(lambda self: self.pending())
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(self.pending()), min_size=1, unique=True))
        self.do(MessagesRemoved(tuple(ids)))
        for lane, messages in self.lanes.items():
            self.lanes[lane] = [message for message in messages if message.id not in ids]

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), text=st.text(max_size=3))
    def replace(self, data: st.DataObject, text: str) -> None:
        id_ = data.draw(st.sampled_from(self.pending()))
        self.do(MessageReplaced(id_, text))
        for messages in self.lanes.values():
            messages[:] = [attrs.evolve(each, text=text) if each.id == id_ else each for each in messages]

    @precondition(lambda self: self.open is None and (self.again or self.pending()))
    @rule()
    def start(self) -> None:
        if self.again:
            self.open, self.again = self.again, []
        else:
            self.open = self.lanes[Lane.NEXT_STEP] + self.lanes[Lane.NEXT_TURN][:1]
            self.lanes = {Lane.NEXT_STEP: [], Lane.NEXT_TURN: self.lanes[Lane.NEXT_TURN][1:]}
            self.attempt = 1
        self.turns += 1
        self.cancelled = False
        event = TurnStarted(self.turns, tuple(message.id for message in self.open), self.attempt)
        assert self.state.next_claim() == event
        self.do(event)

    @precondition(lambda self: self.open is not None and self.lanes[Lane.NEXT_STEP])
    @rule()
    def step(self) -> None:
        assert self.open is not None
        taken, self.lanes[Lane.NEXT_STEP] = self.lanes[Lane.NEXT_STEP], []
        self.do(StepClaimed(self.turns, tuple(message.id for message in taken)))
        self.open = self.open + taken

    @precondition(lambda self: self.open is not None)
    @rule(keep=st.booleans())
    def abort(self, keep: bool) -> None:
        self.do(TurnAborted(self.turns, "user", () if keep else tuple(self.pending())))
        if not keep:
            self.lanes = {Lane.NEXT_TURN: [], Lane.NEXT_STEP: []}
        self.awake = False
        self.cancelled = True

    @precondition(lambda self: self.open is not None)
    @rule(outcome=st.sampled_from(Outcome), redeliver=st.booleans())
    def end(self, outcome: Outcome, redeliver: bool) -> None:
        assert self.open is not None
        redeliver = redeliver and outcome is Outcome.INTERRUPTED and not self.cancelled
        self.do(TurnEnded(self.turns, outcome, redeliver=redeliver))
        self.again = self.open if redeliver else []
        self.attempt += 1
        self.open = None

    @invariant()
    def agrees(self) -> None:
        assert list(self.state.inbox.next_turn) == self.lanes[Lane.NEXT_TURN]
        assert list(self.state.inbox.next_step) == self.lanes[Lane.NEXT_STEP]
        assert (list(self.state.turn.claimed) if self.state.turn else None) == self.open
        wanted = any(message.wake for lane in self.lanes.values() for message in lane)
        assert self.state.has_reason_to_run == (bool(self.again) or (self.awake and wanted))
        assert (self.state.inbox is inboxes.EMPTY) == (not self.pending())
        assert self.state.is_blank == (not self.pending() and self.open is None and not self.again)
        assert len(inboxes.EMPTY) == 0

    def teardown(self) -> None:
        assert seen(replay(self.log)) == seen(self.state)


SessionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSession = SessionMachine.TestCase
