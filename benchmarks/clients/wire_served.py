"""Dragoman's wire as the catalog builds it for an unknown server: the same, plus a search for thinking tags
and for calls in the text."""

from __future__ import annotations

from asked import request
from contest import measure, model, run, url

from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.models import Models
from dragoman.wire.http_client.client import HttpClient


async def main() -> None:
    here = Provider("here", title="Here", base_url=url(), local=True)
    async with Models(catalog=Catalog({"here": here}), client=HttpClient(use_environment=False)) as models:
        served = models(f"here/{model()}")

        async def turn() -> int:
            seen = 0
            async for events in served.stream(request(), "msg_1"):
                for event in events:
                    if event.type == "text.delta":
                        seen += 1
            return seen

        await measure(turn)


run(main)
