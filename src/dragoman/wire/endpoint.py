"""Where a provider is and how requests are addressed to it: plain data, so that a catalog can fill it.

What stands in a request is the wire's; how one signs in is in `wire/auth/`; how a reply is cut into events is
in `wire/http_client/framing.py`.
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
    """One address of one provider. `{model}` in the path stands for the model's name.

    The headers are never printed.
    """

    base_url: str = ""
    path: str = ""
    path_prefix: str = ""  # of all paths, behind a base URL that may have it already
    query: Mapping[str, str] = field(default_factory=dict)
    auth: ProviderAuth = NO_KEY
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    framing: FramingName = "sse"
    body: Mapping[str, JsonValue] = field(default_factory=dict)  # over what the wire writes; None removes
    form: bool = False  # the body is a form with files in it (`wire/http_client/body.py`), and not JSON
    header_fields: Mapping[str, str] = field(default_factory=dict)  # of the body, that it takes as headers
    whole_names: bool = False  # a slash in a model's name is no step of the path
    lists: str | None = "models"  # the path under which it lists its models

    def url(self, model: str) -> str:
        """The whole address for this model."""
        return self._at(
            self.path.format(model=quote(model, safe="" if self.whole_names else "/@")), self.query
        )

    def list_url(self) -> str | None:
        """Where it lists its models. None where it does so at another address, or not at all."""
        return None if self.lists is None else self._at(self.lists, {})

    def sibling_url(self, path: str) -> str:
        """Another address of the same provider."""
        return self._at(path, {})

    def fitted(self, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """What the wire wrote, as this endpoint takes it."""
        if not self.body:
            return body
        return {name: value for name, value in {**body, **self.body}.items() if value is not None}

    def with_headers_of(self, body: dict[str, JsonValue]) -> Endpoint:
        """The endpoint with the headers that stand in a body, which loses them. Lists are added to."""
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
        """What must not appear in any message: keys, and the longer values of the headers a person set."""
        return (*self.auth.secrets, *(value for value in self.headers.values() if len(value) >= 12))

    def _at(self, path: str, query: Mapping[str, str]) -> str:
        steps = (self.base_url.rstrip("/"), self.path_prefix.strip("/"), path.lstrip("/"))
        asked = f"?{urlencode(query)}" if query else ""
        return f"{'/'.join(step for step in steps if step)}{asked}"


# What is the same for all providers with a wire. A provider is one of these with its `base_url` and `auth`.
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

# Azure before v1: the deployment stands in the path, and the version is a date. It still answers.
AZURE = Endpoint(
    path="openai/deployments/{model}/chat/completions",
    query={"api-version": "2024-10-21"},
    auth=_AZURE_KEY,
    lists=None,
)

# Who differs from the others of its wire, by what the catalog calls it and the wire.
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
    """Each default is what the wire's own provider takes."""

    max_tokens_field: str = "max_completion_tokens"  # older servers know only `max_tokens`
    seed_field: str = "seed"  # Mistral: `random_seed`
    tool_ids: IdShape = "ours"  # Mistral: nine characters of [A-Za-z0-9]; Kimi: `functions.NAME:COUNT`
    reasoning_field: str | None = None  # where thoughts must be sent back with calls; else as they came
    call_signatures: bool = False  # wants every mark on a call back, also where nobody knows whose it is
    reply_after_results: bool = False  # Mistral: a reply must stand between results and the next user message
    no_strict: bool = False  # refuses the word `strict` in tools and schemas
    no_examples: bool = False  # Anthropic: refuses `input_examples`, so that they stand in the description
    strict_tools: bool = False  # makes the arguments of calls fit for certain, where a schema can be strict
    tool_search: bool = False  # loads tools where they were found (`find_tools`), if the model can
    no_forced_choice: bool = False  # refuses any tool choice but `auto` and `none`
    no_stream_usage: bool = False  # refuses `stream_options`
    no_parallel_flag: bool = False  # refuses `parallel_tool_calls`
    no_tool_parts: bool = False  # Vertex: refuses to be asked what Google's own tools did
    no_json_schema: bool = False  # Gemini: reads only OpenAPI's schemas, whatever the model
    no_encrypted_reasoning: bool = False  # cannot return its thoughts encrypted
    image_data: str = "b64_json"  # `response_format` of pictures: Together says `base64`; "" leaves it out
    json_edits: bool = False  # xAI: a picture to be changed comes in JSON, not in a form


NO_QUIRKS = Quirks()
