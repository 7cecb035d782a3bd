"""A test of an agent, without a model."""

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("add", {"a": 17, "b": 23})])
    return ModelResponse([TextPart("It is 40.")])


async def main(url: str) -> str:
    result = await Agent(FunctionModel(script), tools=[add]).run("What is 17 + 23?")
    calls = [
        part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-call"
    ]
    assert [(call.tool_name, call.args) for call in calls] == [("add", {"a": 17, "b": 23})]
    assert "40" in result.output
    return result.output
