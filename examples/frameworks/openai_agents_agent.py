"""An agent of openai-agents that remembers to do something later: reminders for one session, tasks for another.

The model is a class of this file, so that this runs without a network; leave it out to use OpenAI's.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, SQLiteSession, Usage, set_tracing_disabled
from agents.items import TResponseStreamEvent
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from whenidle import MemoryStore, Reminders, ToolSchema, VirtualClock, aio

REMINDER = {"prompt": "Stretch.", "after_seconds": 3600}
TASK = {
    "title": "Digest",
    "prompt": "Sum up the day.",
    "rrule": "DTSTART;TZID=Europe/Paris:20260101T180000\nRRULE:FREQ=DAILY",
    "target": "this_session",
}


def say(text: str) -> ResponseOutputMessage:
    """Return a message of the assistant."""
    content = ResponseOutputText(annotations=[], text=text, type="output_text")
    return ResponseOutputMessage(id="message", content=[content], role="assistant", status="completed", type="message")


class SmallModel(Model):
    """Schedules what the user asks for, and speaks of it when it has come due."""

    async def get_response(  # noqa: D102 - the signature is the framework's
        self,
        system_instructions: str | None,  # noqa: ARG002 - the same
        input: str | list[Any],  # noqa: A002 - the same
        model_settings: Any,  # noqa: ARG002 - the same
        tools: list[Any],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        assert isinstance(input, list)
        last = input[-1]
        if last.get("type") == "function_call_output":
            output: Any = say("It is scheduled.")
        elif last["content"].startswith("[SCHEDULE"):
            output = say(f"It is time! You asked me: {input[0]['content']!r}")
        else:
            takes_rules = "rrule" in tools[0].params_json_schema["properties"]
            arguments = json.dumps(TASK if takes_rules else REMINDER)
            output = ResponseFunctionToolCall(
                arguments=arguments, call_id=f"call-{len(input)}", name="schedule_create", type="function_call"
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[TResponseStreamEvent]:  # noqa: D102 - the same
        raise NotImplementedError("this model does not stream")


def as_tool(tool: ToolSchema, turn: aio.Turn) -> FunctionTool:
    """Give the model one of the tools that whenidle has for the session."""

    async def call(_: ToolContext[Any], arguments: str) -> Any:
        return json.dumps(await turn.call_tool(tool.name, json.loads(arguments)))

    return FunctionTool(tool.name, tool.description, tool.input_schema, call, strict_json_schema=False)


sessions: dict[str, SQLiteSession] = {}
"""What was said, by session. Give them a file: whenidle keeps what is to come, not what the model said."""


async def turn(turn: aio.Turn) -> None:
    """Run the agent on what came for its session, be it from the user or from its own schedule."""
    session = sessions.setdefault(turn.agent.id, SQLiteSession(turn.agent.id))
    agent = Agent("assistant", model=SmallModel(), tools=[as_tool(tool, turn) for tool in turn.agent.tools()])
    text = "\n\n".join(message.text for message in turn.messages)
    result = await Runner.run(agent, text, session=session)
    print(f"{clock.now():%d %b %H:%M} {turn.agent.id}: {result.final_output}")


clock = VirtualClock()


async def main() -> None:
    """Let two users ask, and a day go by in a moment."""
    set_tracing_disabled(disabled=True)
    async with aio.open_host(
        store=MemoryStore(),
        turn=turn,
        clock=clock,
        suites=[Reminders(presets=["reminders"]), aio.Tasks(presets=["tasks"])],
    ) as host:
        ada = await host.create_agent("ada", preset="reminders")
        bob = await host.create_agent("bob", preset="tasks")
        await ada.followup("Remind me to stretch in an hour.")
        await bob.followup("Every evening at six, sum up the day.")
        await aio.advance(clock, timedelta(hours=24))
    for session in sessions.values():
        session.close()


if __name__ == "__main__":
    asyncio.run(main())
