"""An agent of pydantic-ai that remembers to do something later: reminders for one session, tasks for another.

The model is a function, so that this runs without a network; put the name of yours in its place.
"""

import asyncio
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, Tool, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from whenidle import MemoryStore, Reminders, ToolSchema, VirtualClock, aio

REMINDER = {"prompt": "Stretch.", "after_seconds": 3600}
TASK = {
    "title": "Digest",
    "prompt": "Sum up the day.",
    "rrule": "DTSTART;TZID=Europe/Paris:20260101T180000\nRRULE:FREQ=DAILY",
    "target": "this_session",
}


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Be the model: schedule what the user asks for, and speak of it when it has come due."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse([TextPart("It is scheduled.")])
    assert isinstance(last, UserPromptPart)
    if str(last.content).startswith("[SCHEDULE"):
        asked = messages[0].parts[0]
        assert isinstance(asked, UserPromptPart)
        return ModelResponse([TextPart(f"It is time! You asked me: {asked.content!r}")])
    takes_rules = "rrule" in info.function_tools[0].parameters_json_schema["properties"]
    return ModelResponse([ToolCallPart("schedule_create", TASK if takes_rules else REMINDER)])


agent = Agent(FunctionModel(model))
histories: dict[str, list[ModelMessage]] = {}
"""What was said, by session. Keep it in your database: whenidle keeps what is to come, not what the model said."""


def as_tool(tool: ToolSchema, turn: aio.Turn) -> Tool[object]:
    """Give the model one of the tools that whenidle has for the session."""

    async def call(**arguments: Any) -> Any:
        return await turn.call_tool(tool.name, arguments)

    return Tool.from_schema(call, tool.name, tool.description, tool.input_schema)


async def turn(turn: aio.Turn) -> None:
    """Run the agent on what came for its session, be it from the user or from its own schedule."""
    session = turn.agent.id
    tools = [as_tool(tool, turn) for tool in turn.agent.tools()]
    text = "\n\n".join(message.text for message in turn.messages)
    with agent.override(tools=tools):
        result = await agent.run(text, message_history=histories.get(session))
    histories[session] = result.all_messages()
    print(f"{clock.now():%d %b %H:%M} {session}: {result.output}")


clock = VirtualClock()


async def main() -> None:
    """Let two users ask, and a day go by in a moment."""
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


if __name__ == "__main__":
    asyncio.run(main())
