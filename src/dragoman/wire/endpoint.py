"""Describe where a provider is and how requests are addressed to it: plain data for a catalog.

The content of a request belongs to the wire. Authentication is in `wire/auth/`. Splitting a reply into events
is in `wire/http_client/framing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from pydantic import JsonValue

from dragoman.wire.auth.auth import NO_KEY, KeyAuth, ProviderAuth
from dragoman.wire.http_client.framing import FramingName


@dataclass(slots=True, frozen=True)
class Endpoint:
    """One address of one provider. `{model}` in the path is replaced by the model's name.

    The headers are never printed.
    """

    base_url: str = ""
    path: str = ""
    path_prefix: str = ""  # of all paths, after a base URL that may contain it already
    query: Mapping[str, str] = field(default_factory=dict)
    auth: ProviderAuth = NO_KEY
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    framing: FramingName = "sse"
    # overrides what the wire writes; None removes a field
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    form: bool = False  # the body is a form with files in it (`wire/http_client/body.py`), and not JSON
    header_fields: Mapping[str, str] = field(default_factory=dict)  # body fields that are sent as headers
    whole_names: bool = False  # escape a slash in a model's name
    lists: str | None = "models"  # the path that lists its models

    def url(self, model: str) -> str:
        """Return the full URL for this model."""
        return self._at(
            self.path.format(model=quote(model, safe="" if self.whole_names else "/@")), self.query
        )

    def list_url(self) -> str | None:
        """Return the URL that lists its models. None if it has no list, or has it at another address."""
        return None if self.lists is None else self._at(self.lists, {})

    def sibling_url(self, path: str) -> str:
        """Return another URL of the same provider."""
        return self._at(path, {})

    def fitted(self, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the wire's body as this endpoint takes it."""
        if not self.body:
            return body
        return {name: value for name, value in {**body, **self.body}.items() if value is not None}

    def with_headers_of(self, body: dict[str, JsonValue]) -> Endpoint:
        """Return the endpoint with headers from the body, and remove these from the body.

        Lists are appended.
        """
        headers = dict(self.headers)
        for name, header in self.header_fields.items():
            wanted = body.pop(name, None)
            words = [str(word) for word in wanted] if isinstance(wanted, list) else []
            held = [word.strip() for word in headers.get(header, "").split(",")]
            if words:
                headers[header] = ",".join(dict.fromkeys(filter(None, [*held, *words])))
        return self if headers == self.headers else replace(self, headers=headers)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that must not appear in any message: keys, and the longer values of headers that a user
        set."""
        return (*self.auth.secrets, *(value for value in self.headers.values() if len(value) >= 12))

    def _at(self, path: str, query: Mapping[str, str]) -> str:
        steps = (self.base_url.rstrip("/"), self.path_prefix.strip("/"), path.lstrip("/"))
        asked = f"?{urlencode(query)}" if query else ""
        return f"{'/'.join(step for step in steps if step)}{asked}"


# The common part of all providers with a wire. A provider is one of these with its `base_url` and `auth`.
ENDPOINTS: dict[str, Endpoint] = {
    "openai_chat": Endpoint(path="chat/completions"),
    "openai_responses": Endpoint(path="responses"),
    "anthropic_messages": Endpoint(
        path="messages",
        auth=KeyAuth(header="x-api-key", prefix=""),
        headers={"anthropic-version": "2023-06-01"},
        header_fields={"anthropic_beta": "anthropic-beta"},
        lists="models?limit=1000",
    ),
    "gemini": Endpoint(
        path="models/{model}:streamGenerateContent",
        query={"alt": "sse"},
        auth=KeyAuth(header="x-goog-api-key", prefix=""),
        lists="models?pageSize=1000",
    ),
    "bedrock_converse": Endpoint(
        path="model/{model}/converse-stream",
        headers={"Accept": "application/vnd.amazon.eventstream"},
        framing="aws_events",
        whole_names=True,
        lists=None,
    ),
}

_AZURE_KEY = KeyAuth(header="api-key", prefix="")

# Azure before v1: the path contains the deployment, and the version is a date. It still works.
AZURE = Endpoint(
    path="openai/deployments/{model}/chat/completions",
    query={"api-version": "2024-10-21"},
    auth=_AZURE_KEY,
    lists=None,
)

# Providers that differ from others with their wire, by their catalog name and wire.
SHAPES: dict[tuple[str, str], Endpoint] = {
    ("azure", "openai_chat"): AZURE,
    ("azure_v1", "openai_chat"): replace(ENDPOINTS["openai_chat"], path_prefix="/openai/v1", auth=_AZURE_KEY),
    ("azure_v1", "openai_responses"): replace(
        ENDPOINTS["openai_responses"], path_prefix="/openai/v1", auth=_AZURE_KEY
    ),
    ("bedrock_invoke", "anthropic_messages"): Endpoint(
        path="model/{model}/invoke-with-response-stream",
        headers={"Accept": "application/vnd.amazon.eventstream"},
        framing="aws_events",
        body={"model": None, "stream": None, "anthropic_version": "bedrock-2023-05-31"},
        whole_names=True,
        lists=None,
    ),
    ("vertex_gemini", "gemini"): Endpoint(
        path="publishers/google/models/{model}:streamGenerateContent", query={"alt": "sse"}, lists=None
    ),
    ("vertex_claude", "anthropic_messages"): Endpoint(
        path="publishers/anthropic/models/{model}:streamRawPredict",
        body={"model": None, "anthropic_version": "vertex-2023-10-16"},
        lists=None,
    ),
}


# How a provider differs from the protocol of its wire: plain data, written in the catalog.


IdShape: TypeAlias = Literal["ours", "mistral", "kimi"]


@dataclass(slots=True, frozen=True)
class Quirks:
    """Differences from the wire. Each default is what the wire's own provider accepts."""

    max_tokens_field: str = "max_completion_tokens"  # older servers know only `max_tokens`
    seed_field: str = "seed"  # Mistral: `random_seed`
    tool_ids: IdShape = "ours"  # Mistral: nine characters of [A-Za-z0-9]; Kimi: `functions.NAME:COUNT`
    reasoning_field: str | None = None  # where reasoning must be sent back with calls; otherwise as it came
    call_signatures: bool = False  # requires every call signature back, even one of unknown origin
    # Mistral: an assistant message must separate results from the next user message
    reply_after_results: bool = False
    no_strict: bool = False  # refuses the keyword `strict` in tools and schemas
    no_examples: bool = False  # Anthropic: refuses `input_examples`, so the description contains them
    strict_tools: bool = False  # guarantees valid call arguments, if a schema can be strict
    tool_search: bool = False  # loads tools where they were found (`find_tools`), if the model can
    no_forced_choice: bool = False  # refuses any tool choice but `auto` and `none`
    no_stream_usage: bool = False  # refuses `stream_options`
    no_parallel_flag: bool = False  # refuses `parallel_tool_calls`
    no_tool_parts: bool = False  # Vertex: refuses requests for results of Google's own tools
    no_json_schema: bool = False  # Gemini: reads only OpenAPI's schemas, whatever the model
    no_encrypted_reasoning: bool = False  # cannot return its reasoning encrypted
    image_data: str = "b64_json"  # `response_format` of images: Together uses `base64`; "" leaves it out
    json_edits: bool = False  # xAI: an image to edit is sent in JSON, not in a form


NO_QUIRKS = Quirks()
