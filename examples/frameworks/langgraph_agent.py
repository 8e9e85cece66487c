"""An agent of LangGraph that remembers to do something later: reminders for one session, tasks for another.

The model is a function, so that this runs without a network; put a chat model of yours in its place, with `bind_tools`.
"""

import asyncio
from datetime import timedelta
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from whenidle import MemoryStore, Reminders, ToolSchema, VirtualClock, aio

REMINDER = {"prompt": "Stretch.", "after_seconds": 3600}
TASK = {
    "title": "Digest",
    "prompt": "Sum up the day.",
    "rrule": "DTSTART;TZID=Europe/Paris:20260101T180000\nRRULE:FREQ=DAILY",
    "target": "this_session",
}


def model(messages: list[AnyMessage], tools: list[StructuredTool]) -> AIMessage:
    """Be the model: schedule what the user asks for, and speak of it when it has come due."""
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return AIMessage("It is scheduled.")
    if str(last.content).startswith("[SCHEDULE"):
        return AIMessage(f"It is time! You asked me: {messages[0].content!r}")
    takes_rules = "rrule" in tools[0].args
    call = {"name": "schedule_create", "args": TASK if takes_rules else REMINDER, "id": f"call-{len(messages)}"}
    return AIMessage("", tool_calls=[call])


def as_tool(tool: ToolSchema, turn: aio.Turn) -> StructuredTool:
    """Give the model one of the tools that whenidle has for the session."""

    async def call(**arguments: Any) -> Any:
        return await turn.call_tool(tool.name, arguments)

    return StructuredTool.from_function(
        coroutine=call, name=tool.name, description=tool.description, args_schema=tool.input_schema
    )


memory = InMemorySaver()
"""What was said, by session. Take one with a database: whenidle keeps what is to come, not what the model said."""


def graph(tools: list[StructuredTool]) -> Any:
    """Return the agent: a model, and tools whose results go back to it."""

    def think(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [model(state["messages"], tools)]}

    return (
        StateGraph(MessagesState)
        .add_node("model", think)
        .add_node("tools", ToolNode(tools))
        .add_edge(START, "model")
        .add_conditional_edges("model", tools_condition)
        .add_edge("tools", "model")
        .compile(checkpointer=memory)
    )


async def turn(turn: aio.Turn) -> None:
    """Run the agent on what came for its session, be it from the user or from its own schedule."""
    agent = graph([as_tool(tool, turn) for tool in turn.agent.tools()])
    thread = {"configurable": {"thread_id": turn.agent.id}}
    text = "\n\n".join(message.text for message in turn.messages)
    result = await agent.ainvoke({"messages": [("user", text)]}, thread)
    print(f"{clock.now():%d %b %H:%M} {turn.agent.id}: {result['messages'][-1].content}")


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
