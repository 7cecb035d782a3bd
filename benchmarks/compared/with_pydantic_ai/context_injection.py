"""Look up context for the model before each request."""

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url: str) -> str:
    model = OpenAIChatModel("context", provider=OpenAIProvider(base_url=url, api_key="-"))
    agent = Agent(model, deps_type=dict[str, str])

    @agent.instructions
    def retrieval(context: RunContext[dict[str, str]]) -> str:
        return f"The shop closes at {context.deps['closes']}."

    return (await agent.run("When do you close?", deps={"closes": "six"})).output
