"""An answer of a type."""

from pydantic import BaseModel

from dragoman import OpenAICompatible, Runtime


class City(BaseModel):
    name: str
    people: int


async def main(url: str) -> str:
    async with Runtime("chat.db", model=OpenAICompatible(url, "typed")) as runtime:
        city = (await (await runtime.send("Name a city.", output_type=City)).result()).output
        return f"{city.name}: {city.people}"
