"""Use any address in one line: a model behind a server with one of the four protocols.

Runtime("chat.db", model=OpenAICompatible("http://localhost:8000/v1", model="qwen3"))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias
from urllib.parse import urlsplit

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.media import Modality
from dragoman.providers.catalog import Provider
from dragoman.providers.catalog_tables import TraitsTable
from dragoman.web_address import web_address
from dragoman.wire.endpoint import ENDPOINTS


@dataclass(slots=True, frozen=True)
class OpenAICompatible:
    """A model of a server with OpenAI's Chat Completions API: vLLM, llama.cpp, LM Studio, a gateway.

    `context`, `modalities`, `dialect` and `options` are what a catalog would contain. Its full name is
    `name/model`. Without a name, the address replaces it: the host, a path longer than a protocol's version,
    and another protocol.
    """

    base_url: str
    model: str
    key: str | None = field(default=None, repr=False)
    name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    context: int | None = None
    modalities: tuple[Modality, ...] | None = None
    dialect: str | None = None
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    wire: ClassVar[str] = "openai_chat"

    def __post_init__(self) -> None:
        if web_address(self.base_url, references=True) is None:
            raise ConfigError(
                f"{type(self).__name__}: {self.base_url!r} is not an address such as http://host/v1."
            )
        if not self.model:
            raise ConfigError(f"{type(self).__name__} needs a model.")

    @property
    def full_name(self) -> str:
        return f"{self.provider.name}/{self.model}"

    @property
    def provider(self) -> Provider:
        """Return the server as a provider of the catalog."""
        known: TraitsTable = {}
        if self.context is not None:
            known["context"] = self.context
        if self.modalities is not None:
            known["modalities"] = [*self.modalities]
        if self.dialect is not None:
            known["tools"] = self.dialect
        if self.options:
            known["options"] = dict(self.options)
        name = self.name or self._name_of_address()
        return Provider(
            name,
            name,
            self.base_url,
            wire=self.wire,
            headers=self.headers,
            defaults=known,
            local=self.key is None,  # it needs none
            custom=True,
        )

    def _name_of_address(self) -> str:
        """Return a name that depends only on the address, not on other models: turns are stored with it."""
        address = urlsplit(self.base_url)
        host = address.netloc.rpartition("@")[2]  # without a user name and password
        path = address.path.rstrip("/").removesuffix(f"/{ENDPOINTS[self.wire].path}")
        path = re.sub(r"/(?:v1|v1beta)$", "", path)
        protocol = "" if self.wire == OpenAICompatible.wire else self.wire
        return re.sub(r"[^a-z0-9]+", "-", f"{host}{path} {protocol}".lower()).strip("-") or "server"


class ResponsesCompatible(OpenAICompatible):
    """A model of a server with OpenAI's Responses API."""

    __slots__ = ()
    wire = "openai_responses"


class AnthropicCompatible(OpenAICompatible):
    """A model of a server with Anthropic's Messages API."""

    __slots__ = ()
    wire = "anthropic_messages"


class GeminiCompatible(OpenAICompatible):
    """A model of a server with Gemini's API."""

    __slots__ = ()
    wire = "gemini"


NamedModel: TypeAlias = str | OpenAICompatible
"""A model by its name in the catalog, or by its address."""
