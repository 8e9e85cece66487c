"""The task suite: host-wide tasks with rules, targets and receipts (SPEC 6).

Tasks lie in the store. In memory there is one alarm for the earliest of them all, and a *pursuit* for each
destination that something is due for now.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from whenidle_actors import task_calls
from whenidle_actors.errors import AgentDisposed, AgentFaulted, CompositionError, MaintenanceAborted, TaskConflict
from whenidle_actors.task_claims import admit_when_idle
from whenidle_actors.task_deliveries import TaskDeliveries
from whenidle_actors.task_desk import TaskDesk
from whenidle_protocol.task_admission import Admission
from whenidle_protocol.task_answers import internal_error
from whenidle_protocol.task_delivery import run_now
from whenidle_protocol.task_requests import CreateTask
from whenidle_protocol.task_schemas import task_tools
from whenidle_protocol.task_settings import Caller, TaskSettings
from whenidle_protocol.task_tools import check_caller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from whenidle_actors.agent import Agent
    from whenidle_actors.agent_core import AgentCore
    from whenidle_actors.services import Services
    from whenidle_actors.stores.base import SessionHeader
    from whenidle_protocol.task_record import Task
    from whenidle_protocol.task_requests import TaskRequest
    from whenidle_protocol.tool_schemas import ToolSchema

T = TypeVar("T")


class Tasks:
    """The suite of the four task tools, and of tasks made through the host's own API (`desk`).

    Args:
        settings: the host's choices; see `TaskSettings`.
        presets: the presets whose agents get the tools; all, if not given (SPEC 6.1). With `()` no agent gets
            them: the host delivers tasks, which are managed through `desk` or from other processes.
        may: asked whether an agent may `view`, `update` or `delete` a task; what it forbids looks as if it did
            not exist. Everything is allowed if not given. It must not block.
    """

    name = "tasks"

    def __init__(
        self,
        settings: TaskSettings | None = None,
        *,
        presets: Sequence[str] | None = None,
        may: Callable[[Agent, str, Task], bool] | None = None,
    ) -> None:
        self.settings: TaskSettings = TaskSettings() if settings is None else settings
        self.presets: frozenset[str] | None = None if presets is None else frozenset(presets)
        self._may = may
        self._tools = task_tools(self.settings)
        self._services: Services | None = None
        self._desk: TaskDesk | None = None
        self._deliveries: TaskDeliveries | None = None

    # As a suite -------------------------------------------------------------------------------

    def mounted(self, services: Services) -> None:
        """See `Suite.mounted`.

        Raises:
            CompositionError: it is mounted already.
        """
        if self._services is not None:
            raise CompositionError("this Tasks suite is mounted already; make one for each host")
        self._services = services
        self._deliveries = deliveries = TaskDeliveries(services, self.settings, self.name)
        self._desk = TaskDesk(services.journal, self.settings, services.random, deliveries.changed)

    @property
    def services(self) -> Services:
        """The host it is mounted on.

        Raises:
            CompositionError: it is not mounted.
        """
        return _mounted(self._services)

    @property
    def desk(self) -> TaskDesk:
        """Create, list, view, edit and delete tasks from the host's own code.

        Raises:
            CompositionError: the suite is not mounted.
        """
        return _mounted(self._desk)

    def suits(self, header: SessionHeader) -> bool:
        """See `Suite.suits`: by preset; delegated agents see the tools, though each call is refused (SPEC 6.1)."""
        return self.presets is None or header.preset in self.presets

    def tools(self) -> Sequence[ToolSchema]:
        """See `Suite.tools`."""
        return self._tools

    def attend(self, session_id: str, due_millis: int) -> None:
        """See `Suite.attend`: tasks are no concern of a session's."""

    def recompute(self, agent: AgentCore) -> None:
        """See `Suite.recompute`: tasks are no concern of a session's."""

    def release(self, session_id: str) -> None:
        """See `Suite.release`: what is due for the session later restores its agent."""

    def look(self) -> None:
        """See `Suite.look`."""
        _mounted(self._deliveries).look()

    def due(self, session_id: str) -> None:  # noqa: ARG002 - there is one alarm for all tasks
        """See `Suite.due`."""
        _mounted(self._deliveries).look()

    # Tool calls -------------------------------------------------------------------------------

    async def call(self, agent: Agent | None, tool: str, arguments: Mapping[str, Any]) -> Any:
        """See `Suite.call`; without a calling agent the answer is `internal_error` (SPEC 6.1)."""
        try:
            caller = check_caller(None if agent is None else _caller(agent))
            request = task_calls.read(tool, arguments, self.settings)
            assert agent is not None  # noqa: S101 - `check_caller` has seen to it
            allows = None if self._may is None else partial(self._allows, agent)
            return await agent.in_queue(partial(self._serve, agent, request, caller, allows))
        except (AgentDisposed, AgentFaulted):
            raise
        except Exception as error:  # noqa: BLE001 - it is logged, and what it says is no business of the model's
            return task_calls.refusal(error, tool, None if agent is None else agent.id)

    async def _serve(self, agent: Agent, request: TaskRequest, caller: Caller, allows: task_calls.Allows | None) -> Any:
        """Answer a call in the agent's mailbox."""
        answer = await task_calls.serve(self.desk, request, caller, allows)
        tracing = agent.services.announcer.tracing
        if tracing is not None and isinstance(request, CreateTask):
            await tracing.keep(agent.session, answer["id"])
        return answer

    def _allows(self, agent: Agent, action: str, task: Task) -> bool:
        """Return what the host's hook says.

        Raises:
            ToolError: `internal_error`, the hook failed; nothing is shown or changed then.
        """
        assert self._may is not None  # noqa: S101 - else nobody asks
        try:
            return self._may(agent, action, task)
        except Exception as error:
            raise internal_error() from error

    async def run(self, task_id: str) -> Task:
        """Deliver a task now, whatever its status, and return it; its next occurrence stays (SPEC 6.8).

        Waits until the target agent is idle. Cancelled, it delivers nothing, or has if the commit had begun.

        Raises:
            ToolError: `schedule_not_found`.
            UnknownSession: its session does not exist.
            WouldWaitForItself: called from inside a turn of the target agent.
            AgentFaulted: the target agent was given up.
            AgentDisposed: the host stops.
            StoreError: it could not be delivered, or, if CommitUncertain, may have been.
        """
        done: list[Task] = []

        async def choose() -> Admission:
            if done:  # an attempt that was aborted came through after all
                return Admission()
            task = await self.desk.view(task_id)
            if task.target.session_id != session_id:  # it was given another target meanwhile: begin again
                return Admission()
            return Admission((run_now(task, self.services.clock.now()),))

        def note(admission: Admission) -> None:
            done.extend(due.after for due in admission.delivered)
            _mounted(self._deliveries).admitted(admission)

        while not done:
            session_id = (await self.desk.view(task_id)).target.session_id
            try:
                await admit_when_idle(self.services, session_id, choose, note, lambda agent: agent.when_idle())
            except (AgentDisposed, MaintenanceAborted, TaskConflict):
                if self.services.registry.closing and not done:
                    raise
        return done[0]


def _mounted(part: T | None) -> T:
    if part is None:
        raise CompositionError("this Tasks suite is not mounted on a host: give it to open_host, in suites")
    return part


def _caller(agent: Agent) -> Caller:
    header = agent.header
    return Caller(agent.id, header.delegation_depth, header.cwd, header.preset)
