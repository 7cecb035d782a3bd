"""Where a provider is and how requests are addressed to it: plain data, so that a catalog can fill it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from dragoman.errors import ConfigError


@dataclass(slots=True, frozen=True)
class Endpoint:
    """One address of one provider. `{model}` in the path stands for the model's name.

    Neither the key nor the headers are ever printed.
    """

    base_url: str = ""
    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    key: str | None = field(default=None, repr=False)
    key_name: str | None = None  # where the person keeps the key, for hints: OPENAI_API_KEY
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            name = self.key_name or "the API key"
            raise ConfigError(f"{name} holds characters that no key has: was it copied with a line break?")

    def url(self, model: str) -> str:
        """The whole address for this model."""
        path = self.path.format(model=quote(model, safe="/@"))
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{self.base_url.rstrip('/')}/{path.lstrip('/')}{query}"

    def all_headers(self) -> dict[str, str]:
        """What goes into a request, with the key."""
        key = {self.key_header: f"{self.key_prefix}{self.key}"} if self.key else {}
        return {**key, **self.headers}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any message: the key, and the longer values of the headers a person set."""
        keys = [self.key] if self.key and len(self.key) >= 6 else []
        return (*keys, *(value for value in self.headers.values() if len(value) >= 12))


# What is the same for all providers with a wire. A provider is one of these with its `base_url` and `key`.
ENDPOINTS: dict[str, Endpoint] = {
    "openai_chat": Endpoint(path="chat/completions"),
    "openai_responses": Endpoint(path="responses"),
    "anthropic_messages": Endpoint(
        path="messages",
        key_header="x-api-key",
        key_prefix="",
        headers={"anthropic-version": "2023-06-01"},
    ),
    "gemini": Endpoint(
        path="models/{model}:streamGenerateContent",
        query={"alt": "sse"},
        key_header="x-goog-api-key",
        key_prefix="",
    ),
}

# Azure keeps a model behind the name of its deployment, and wants its own header and a dated version.
AZURE = Endpoint(
    path="openai/deployments/{model}/chat/completions",
    query={"api-version": "2024-10-21"},
    key_header="api-key",
    key_prefix="",
)
