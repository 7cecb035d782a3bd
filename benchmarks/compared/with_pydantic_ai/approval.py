"""Ask a user before a tool runs."""

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url: str) -> str:
    model = OpenAIChatModel("approval", provider=OpenAIProvider(base_url=url, api_key="-"))
    agent = Agent(model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete(path: str) -> str:
        """Delete a file."""
        return f"{path} is gone"

    result = await agent.run("Delete a.txt")
    assert isinstance(result.output, DeferredToolRequests)
    answers = DeferredToolResults(approvals={call.tool_call_id: True for call in result.output.approvals})
    result = await agent.run(message_history=result.all_messages(), deferred_tool_results=answers)
    assert isinstance(result.output, str)
    return result.output
