"""A chosen model in, whether its server answers out: one small request, and no tokens spent."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp

from dragoman.cli.chosen import Chosen
from dragoman.providers.local.box import PROVIDER

SECONDS = 5.0


@dataclass(slots=True, frozen=True)
class Trouble:
    said: str
    mend: str


async def reached(chosen: Chosen) -> Trouble | None:
    """None where it answers. The list of models is asked for, which every provider has."""
    provider, _ = chosen.models.catalog.find(chosen.name)
    if provider.name == PROVIDER:
        return None  # we serve it ourselves
    key = chosen.models.keys.needed(provider)
    endpoint = provider.reached(provider.address(), key.value if key else None, key.name if key else None)
    url = f"{endpoint.base_url.rstrip('/')}/models"
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.get(url, headers=endpoint.all_headers()) as response,
        ):
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError):
        start = "start the server" if provider.local else "look at your network or proxy"
        return Trouble(f"{endpoint.base_url} does not answer", f"{start}, or name another model")
    if status in (401, 403):
        name = key.name if key else next(iter(provider.keys), "the key")
        return Trouble(f"{provider.title} refuses the key (HTTP {status})", f"set {name} to a valid key")
    return None
