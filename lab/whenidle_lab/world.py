"""The world of one run, as scenarios see it: chance, time, and what users do to agents."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from whenidle_actors.activity import is_inside
from whenidle_actors.errors import (
    ActorRestarted,
    AgentBusy,
    AgentDisposed,
    AgentFaulted,
    InvalidArgument,
    StoreError,
    UnknownMessage,
    WhenidleError,
)
from whenidle_actors.offline import Manager
from whenidle_actors.session import Journal
from whenidle_actors.task_desk import TaskDesk
from whenidle_actors.tasks import Tasks
from whenidle_lab.choices import Topic
from whenidle_lab.machine import Machine
from whenidle_lab.store import Defect
from whenidle_lab.trace import What
from whenidle_protocol.errors import ToolError
from whenidle_protocol.task_settings import Caller, TaskSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.turn import Turn
    from whenidle_lab.choices import Chooser
    from whenidle_lab.scenario import Invariant, Scenario
    from whenidle_protocol.events import Message
    from whenidle_protocol.task_requests import CreateTask

T = TypeVar("T")

SPANS = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
"""Seconds that `World.draw_span` draws from: sizes that matter lie on a scale of powers."""

_GONE = (AgentDisposed, AgentFaulted)
"""What whoever speaks to an agent has to expect."""

_FAILURES = (*_GONE, StoreError, ActorRestarted, Defect)
"""What whoever has something written has to expect in a faulty world."""


class World(Machine):
    """One run, as a scenario sees it.

    Times are virtual: `wait` an hour, and no time passes. Everything a scenario draws comes from `draw` and its
    like, so that it is recorded, replayed and shrunk with the rest. Use the methods here rather than those of
    `Agent` for what users do: they are the same, but for being seen by invariants and pictures, and for taking
    the failures a faulty world brings as an answer.

    Host, clock, store and trace are those of the `Machine` that it is.
    """

    def __init__(self, scenario: Scenario, chooser: Chooser, invariants: Sequence[Invariant]) -> None:
        super().__init__(scenario, chooser, invariants)
        self._done: set[str] = set()
        self._numbers = 0
        for invariant in self.invariants:
            invariant.begin(self)

    # Chance and time --------------------------------------------------------------------------

    def once(self, name: str) -> bool:
        """Return True the first time in the run that it is asked about `name`, over all lives."""
        fresh = name not in self._done
        self._done.add(name)
        return fresh

    def draw(self, count: int) -> int:
        """Return a number below `count`; recorded."""
        return self.chooser.pick(Topic.SCENARIO, count)

    def choose(self, options: Sequence[T]) -> T:
        """Return one of some options, of which the first is the quiet one; recorded."""
        return options[self.draw(len(options))]

    def draw_span(self, most: float = 3600.0) -> float:
        """Return seconds, at most `most`, as often short as long; recorded."""
        spans = [span for span in SPANS if span <= most]
        return spans[self.draw(len(spans))] * (1 + self.draw(4))

    async def wait(self, seconds: float) -> None:
        """Let so many seconds of virtual time pass."""
        await trio.sleep(seconds)

    # What users do ----------------------------------------------------------------------------

    async def agent(self, session_id: str, **header: Any) -> Agent:
        """Return the agent of a session, which is made if there is none; tried again while faults prevent it."""
        pause = 1.0
        while True:
            try:
                if any(one.id == session_id for one in await self.store.sessions()):
                    return await self.host.agent(session_id)
                return await self.host.create_agent(session_id, **header)
            except (StoreError, Defect):
                await self.wait(pause)
                pause = min(2 * pause, 60.0)

    async def call(self, agent: Agent, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool as a model would, and return the answer; None if the agent is gone."""
        number = self._number()
        self.happened(What.CALL_BEGAN, agent.id, call=number, tool=tool, arguments=dict(arguments))
        try:
            answer = await agent.call_tool(tool, arguments)
        except _GONE as error:
            self.happened(What.CALL_ENDED, agent.id, call=number, error=_name(error))
            return None
        self.happened(What.CALL_ENDED, agent.id, call=number, answer=answer)
        return answer

    async def send(self, agent: Agent, text: str, how: str = "followup") -> str | None:
        """Send a message by `followup`, `steer` or `inject`; return its id, or None if it was not accepted."""
        number = self._number()
        self.happened(What.SEND_BEGAN, agent.id, send=number, how=how, text=text)
        send: Callable[[str], Awaitable[str]] = getattr(agent, how)
        try:
            message = await send(text)
        except _FAILURES as error:
            self.happened(What.SEND_ENDED, agent.id, send=number, error=_name(error))
            return None
        self.happened(What.SEND_ENDED, agent.id, send=number, message=message)
        return message

    async def remove(self, agent: Agent, message: str) -> bool:
        """Take a pending message out of the inbox; return whether it was still there and is gone."""
        return await self._change(agent, message, "remove", agent.remove(message))

    async def replace(self, agent: Agent, message: str, text: str) -> bool:
        """Give a pending message another text; return whether it was still there and has it."""
        return await self._change(agent, message, "replace", agent.replace(message, text))

    async def _change(self, agent: Agent, message: str, how: str, change: Awaitable[None]) -> bool:
        error: str | None = None
        try:
            await change
        except (UnknownMessage, *_FAILURES) as failure:
            error = _name(failure)
        self.happened(What.CHANGED, agent.id, how=how, message=message, error=error)
        return error is None

    async def fork(self, agent: Agent, upto: int | None = None, *, new_id: str | None = None) -> Agent | None:
        """Fork an agent's session at some event, or at its end; return the new agent, or None if that cannot be."""
        try:
            fork = await self.host.fork(agent.id, upto=upto, new_id=new_id)
        except (InvalidArgument, *_FAILURES):
            return None
        self.happened(What.FORKED, agent.id, session=fork.id, upto=fork.header.seed_length)
        return fork

    async def create_task(self, request: CreateTask, agent: Agent) -> str | None:
        """Make a task by the host's own API, for an agent; return its id, or None if it may not be there."""
        header = agent.header
        try:
            task = await self._tasks().desk.create(request, Caller(agent.id, cwd=header.cwd, preset=header.preset))
        except (ToolError, *_FAILURES):
            return None
        return task.id

    def _tasks(self) -> Tasks:
        return next(suite for suite in self.host.suites if isinstance(suite, Tasks))

    def manager(self, settings: TaskSettings | None = None) -> Manager:
        """Return what another process manages the store with, beside the host; no fault befalls it."""
        journal = Journal(self.store.beside(), self.clock)
        seed = f"manager {self._number()}"
        desk = TaskDesk(journal, settings or TaskSettings(), random.Random(seed))  # noqa: S311 - ids, the same in replays
        return Manager(journal, desk)

    async def run_task(self, task_id: str) -> bool:
        """Run a task of the host's now, as its owner may; return whether it was delivered."""
        number, suite = self._number(), self._tasks()
        self.happened(What.CALL_BEGAN, call=number, tool="run", arguments={"id": task_id})
        error: str | None = None
        try:
            await suite.run(task_id)
        except (ToolError, *_FAILURES) as failure:
            error = _name(failure)
        self.happened(What.CALL_ENDED, call=number, error=error)
        return error is None

    async def maintain(self, agent: Agent, seconds: float = 0.0) -> bool:
        """Hold a maintenance claim for some seconds; return whether there was one to get."""
        number = self._number()

        async def hold() -> None:
            self.happened(What.MAINTENANCE_BEGAN, agent.id, claim=number)
            how = "cancelled"
            try:
                await trio.sleep(seconds)
                how = "returned"
            finally:
                self.happened(What.MAINTENANCE_ENDED, agent.id, claim=number, how=how, error=None)

        try:
            await agent.run_maintenance(hold)
        except (AgentBusy, *_GONE) as error:
            self.happened(What.CLAIM_REFUSED, agent.id, claim=number, error=_name(error))
            return False
        except WhenidleError:  # aborted by a cancellation
            return True
        return True

    async def when_idle(self, agent: Agent) -> bool:
        """Wait until an agent is idle; return whether it is, or False if it was disposed."""
        number = self._number()
        self.happened(What.WAIT_BEGAN, agent.id, wait=number)
        error: str | None = None
        try:
            await agent.when_idle()
        except _GONE as gone:
            error = _name(gone)
        except trio.Cancelled as cancelled:  # whoever waited has lost interest
            self.happened(What.WAIT_ENDED, agent.id, wait=number, error=_name(cancelled))
            raise
        self.happened(What.WAIT_ENDED, agent.id, wait=number, error=error)
        return error is None

    async def cancel(self, agent: Agent, cause: str, *, keep_inbox: bool = False) -> None:
        """Cancel what an agent does."""
        number, error = self._number(), None
        self.happened(What.CANCEL, agent.id, cancel=number, cause=cause, keep_inbox=keep_inbox)
        try:
            await agent.cancel(cause, keep_inbox=keep_inbox)
        except _FAILURES as failure:
            error = _name(failure)
        self.happened(What.CANCEL_ENDED, agent.id, cancel=number, error=error)

    async def next_step(self, turn: Turn) -> tuple[Message, ...]:
        """Take, between two steps of a turn, what has come meanwhile; raises as `Turn.next_step`."""
        messages = await turn.next_step()
        ids = [message.id for message in messages]
        self.happened(What.STEPPED, turn.agent.id, turn=turn.number, messages=ids)
        return messages

    async def dispose(self, agent: Agent) -> None:
        """Dispose an agent."""
        self.happened(What.DISPOSE_BEGAN, agent.id, current=self.is_open and agent in self.host.agents)
        await agent.dispose()
        self.happened(What.DISPOSE_ENDED, agent.id, inside=is_inside(agent))

    def note(self, text: str, agent: str = "", **detail: Any) -> None:
        """Put something of the scenario's own into the trace."""
        self.happened(What.NOTE, agent, text=text, **detail)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1


def _name(error: BaseException) -> str:
    return type(error).__name__
