"""An answer of a type."""

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class City(BaseModel):
    name: str
    people: int


async def main(url: str) -> str:
    model = OpenAIChatModel("typed", provider=OpenAIProvider(base_url=url, api_key="-"))
    agent = Agent(model, output_type=NativeOutput(City))
    city = (await agent.run("Name a city.")).output
    return f"{city.name}: {city.people}"
