"""The process ends while an approval request waits; the next process resumes from what the program saved."""

from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

SAVED = Path("history.json")


def make_agent(url: str) -> Agent[None, str | DeferredToolRequests]:
    model = OpenAIChatModel("restart", provider=OpenAIProvider(base_url=url, api_key="-"))
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    return agent


async def first(url: str) -> list[str]:
    result = await make_agent(url).run("Pay 12.")
    assert isinstance(result.output, DeferredToolRequests)
    SAVED.write_bytes(result.all_messages_json())
    return [call.tool_call_id for call in result.output.approvals]


async def second(url: str, calls: list[str]) -> str:
    history = ModelMessagesTypeAdapter.validate_json(SAVED.read_bytes())
    answers = DeferredToolResults(approvals=dict.fromkeys(calls, True))
    result = await make_agent(url).run(message_history=history, deferred_tool_results=answers)
    assert isinstance(result.output, str)
    SAVED.write_bytes(result.all_messages_json())
    return result.output


async def main(url: str) -> str:
    return await second(url, await first(url))
