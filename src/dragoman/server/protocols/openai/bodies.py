"""What both APIs take: content parts, functions, options, and how each is refused where it is not offered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dragoman.messages.request import OutputSpec, ToolSpec
from dragoman.server.protocols.openai.attachments import attached_sound, attached_url
from dragoman.server.protocols.openai.brought import Content
from dragoman.server.protocols.openai.errors import ApiRefusal, not_offered
from dragoman.turn.output import spec_of_schema
from dragoman.turn.send import MOST

MANY = 10_000  # messages or parts of one request

Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]


class StrictBody(BaseModel):
    """A request: of a field that is not known here nothing would come."""

    model_config = ConfigDict(extra="forbid")


class Lenient(BaseModel):
    """A part of a request that clients send back as they got it, with fields that have no meaning then."""

    model_config = ConfigDict(extra="ignore")


# ── content ───────────────────────────────────────────────────────────────────────────────────────


class ImageUrl(Lenient):
    url: str


class FileData(Lenient):
    file_data: str | None = None
    filename: Annotated[str | None, Field(max_length=255)] = None


class Sound(Lenient):
    data: str
    format: str


class ContentPart(Lenient):
    """Of either API: their parts differ in names alone."""

    type: Literal[
        "text",
        "input_text",
        "output_text",
        "refusal",
        "image_url",
        "input_image",
        "file",
        "input_file",
        "input_audio",
    ]
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None
    file: FileData | None = None
    file_data: str | None = None
    filename: Annotated[str | None, Field(max_length=255)] = None
    input_audio: Sound | None = None


_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
AnyContent: TypeAlias = str | Annotated[list[ContentPart], Field(max_length=MANY)]


def read_content(content: AnyContent | None, param: str, limit: int) -> Content:
    if content is None or isinstance(content, str):
        return (content,) if content else ()
    return tuple(_read(part, f"{param}[{at}]", limit) for at, part in enumerate(content))


def _read(part: ContentPart, param: str, limit: int) -> Any:
    match part:
        case ContentPart(type="text" | "input_text" | "output_text", text=str(text)):
            return text
        case ContentPart(type="refusal", refusal=str(text)):
            return text
        case ContentPart(type="image_url" | "input_image", image_url=ImageUrl(url=url) | str(url)):
            return attached_url(url, param, limit)
        case ContentPart(type="file", file=FileData(file_data=str(url), filename=name)):
            return attached_url(url, param, limit, name)
        case ContentPart(type="input_file", file_data=str(url), filename=name):
            return attached_url(url, param, limit, name)
        case ContentPart(type="input_audio", input_audio=Sound(data=data, format=format)):
            return attached_sound(data, format, param, limit)
    what = f"a part of type {part.type} comes with its content, as text or base64: no file is known by an id"
    raise ApiRefusal(what, param, code="invalid_value")


def text_alone(content: AnyContent | None, param: str) -> str:
    """The text of a prompt, or of what an assistant said."""
    parts = content if isinstance(content, list) else ()
    for at, part in enumerate(parts):
        if part.type not in _TEXTS:
            raise ApiRefusal("only users and tools send files", f"{param}[{at}]", code="invalid_value")
    return "\n".join(piece for piece in read_content(content, param, 0) if isinstance(piece, str))


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class Function(Lenient):
    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


class OfferedTool(Lenient):
    """In Chat Completions the function is inside, in Responses it is the tool."""

    type: str
    function: Function | None = None
    name: str | None = None
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None

    def spec(self, param: str) -> ToolSpec:
        if self.type != "function":
            what = f"tools of type {self.type} are not offered: agents have theirs, callers bring functions"
            raise ApiRefusal(what, param, code="unsupported_value")
        found = self.function or Function(
            name=self.name or "", description=self.description, parameters=self.parameters
        )
        empty: dict[str, JsonValue] = {"type": "object", "properties": {}}
        return ToolSpec(found.name, found.description or "", found.parameters or empty)


class NamedChoice(Lenient):
    type: str
    name: str | None = None
    function: Function | None = None


Tools = Annotated[list[OfferedTool], Field(max_length=MOST)]


def tool_specs(tools: Sequence[OfferedTool] | None) -> list[ToolSpec]:
    return [tool.spec(f"tools[{at}]") for at, tool in enumerate(tools or ())]


def choice_option(choice: str | NamedChoice | None) -> dict[str, JsonValue]:
    """`auto` is what happens without it."""
    match choice:
        case None | "auto":
            return {}
        case "none" | "required":
            return {"tool_choice": choice}
        case NamedChoice(type="function", name=name, function=function) if name or function:
            return {"tool_choice": name or (function.name if function else "")}
        case _:
            what = "tool_choice is auto, none, required, or names a function"
            raise ApiRefusal(what, "tool_choice", code="unsupported_value")


# ── the answer's type ─────────────────────────────────────────────────────────────────────────────


class JsonSchemaFormat(Lenient):
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None


class AnswerFormat(JsonSchemaFormat):
    """In Chat Completions the schema is inside, in Responses it is beside the type."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    def spec(self, param: str) -> OutputSpec | None:
        if self.type == "text":
            return None
        if self.type == "json_object":
            return spec_of_schema({"type": "object"})
        schema = (self.json_schema or self).schema_
        if schema is None or schema.get("type") != "object":
            what = "the schema of an answer is there, and of type object at its root"
            raise ApiRefusal(what, f"{param}.schema", code="invalid_json_schema")
        return spec_of_schema(schema)


# ── options ───────────────────────────────────────────────────────────────────────────────────────


class AnswerOptions(StrictBody):
    """The options that both have, and what is taken because it asks for nothing that is not so already."""

    model: Annotated[str, Field(max_length=500)]
    stream: bool | None = None
    metadata: Metadata | None = None
    temperature: float | None = None
    top_p: float | None = None
    parallel_tool_calls: bool | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: str | None = None
    store: bool | None = None
    user: Annotated[str | None, Field(description="the key says whose a request is")] = None
    tools: Tools | None = None
    tool_choice: str | NamedChoice | None = None

    def options(self, renamed: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Those of a request, in the words that all wires share."""
        if self.store is False:
            what = "everything is stored here, so that people can see and answer it: leave out store"
            raise not_offered("store", what)
        given: dict[str, JsonValue] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "parallel_tool_calls": None if self.parallel_tool_calls else self.parallel_tool_calls,
            "service_tier": None if self.service_tier in ("auto", "default") else self.service_tier,
            "prompt_cache_key": self.prompt_cache_key,
            "cache_lifetime": "24h" if self.prompt_cache_retention == "24h" else None,
            "safety_identifier": self.safety_identifier,
            **choice_option(self.tool_choice),
            **renamed,
        }
        return {name: value for name, value in given.items() if value is not None}


Refusals: TypeAlias = Iterable[tuple[str, Callable[[Any], bool], str]]


def refuse(body: BaseModel, refusals: Refusals) -> None:
    """Each field with what makes it one too many, and the words for it."""
    for name, wanted, what in refusals:
        value = getattr(body, name)
        if value is not None and wanted(value):
            raise not_offered(name, what)
