"""Choose a model: the named one, one of a local server, or one whose key is set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dragoman.errors import ConfigError
from dragoman.messages.media import CHAT
from dragoman.providers.catalog import Catalog
from dragoman.providers.listing import LocalServer, discover
from dragoman.providers.local.box import IN_THE_BOX, PROVIDER
from dragoman.providers.local.downloaded import newest
from dragoman.providers.local.server import can_serve
from dragoman.providers.sign_in import Keys
from dragoman.sentences import sentence


class NoModel(ConfigError):
    """No model on this machine or in the settings can answer: an admin has to set one up."""


@dataclass(slots=True, frozen=True)
class ModelChoice:
    """A model by name, and the reason in words: "OPENAI_API_KEY is set"."""

    name: str
    reason: str


async def choose(
    named: str | None,
    *,
    catalog: Catalog,
    keys: Keys,
    servers: Callable[[], Awaitable[Sequence[LocalServer]]] = discover,
    boxed: Callable[[], bool] = can_serve,
) -> ModelChoice:
    """Return the named model, or else the first that is available.

    In order: a model of a local server, one of a provider whose key is set (in the catalog's order), the last
    one downloaded here, and the bundled model. Raises NoModel if all are missing. A scripted model is chosen
    only by name.
    """
    if named:
        return ModelChoice(named, sentence("model.named"))
    for server in await servers():
        talking = [name for name in server.models if _talks(catalog, server.provider, name)]
        if talking:
            title = catalog.providers[server.provider].title if server.provider in catalog.providers else ""
            name = f"{server.provider}/{talking[0]}"
            return ModelChoice(
                name, sentence("model.runs", provider=title or server.provider, address=server.base_url)
            )
    for provider in catalog.providers.values():
        if provider.local or provider.default is None:
            continue
        if (key := keys.find(provider)) is not None:
            where = "is set" if key.source == "environment" else "is there"
            reason = f"{key.name} {where}" + (" in the keyring" if key.source == "keyring" else "")
            return ModelChoice(f"{provider.name}/{provider.default}", reason)
    if boxed():
        if (fetched := newest()) is not None:
            return ModelChoice(f"{PROVIDER}/{fetched.name}", sentence("model.downloaded"))
        return ModelChoice(f"{PROVIDER}/{IN_THE_BOX}", sentence("model.box_chosen"))
    raise NoModel(sentence("model.none"))


def _talks(catalog: Catalog, provider: str, model: str) -> bool:
    """Return whether a model chats. A server may also have models that transcribe or speak, which cannot
    answer."""
    known = catalog.providers.get(provider)
    return known is None or catalog.traits(known, model).type == CHAT
