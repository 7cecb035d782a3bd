"""Show the answer while it is written."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url: str) -> str:
    model = OpenAIChatModel("stream", provider=OpenAIProvider(base_url=url, api_key="-"))
    shown = ""
    async with Agent(model).run_stream("Say something.") as result:
        async for piece in result.stream_text(delta=True, debounce_by=None):
            shown += piece
    return shown
