"""Parse the input that both of OpenAI's APIs share: content, files, functions and options."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from dragoman.errors import NotFound
from dragoman.messages.ids import new_id
from dragoman.messages.media import is_media_type, parse_data_url
from dragoman.messages.message import (
    Arguments,
    CallState,
    File,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.request import OutputSpec, ToolSpec
from dragoman.server.context import Context
from dragoman.server.protocols.openai.api_errors import ApiRefusal, not_offered
from dragoman.server.protocols.threads import store_file
from dragoman.turn.output import spec_of_schema
from dragoman.turn.send import MOST
from dragoman.wire.calls import parse_arguments

_SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav"}


@dataclass(slots=True, frozen=True)
class Attached:
    """A file of a request. It has its bytes before it is stored, or none if it was uploaded earlier. `hash`
    is its name in the store."""

    media_type: str
    data: bytes | None
    name: str | None
    hash: str
    size: int

    async def stored(self, context: Context) -> File:
        if self.data is None:
            return File(self.media_type, blob=self.hash, name=self.name, size=self.size)
        return await store_file(context, self.data, self.media_type, self.name)


async def uploaded(context: Context, id: str, param: str) -> Attached:
    """Return the file that the caller uploaded under this ID. Raises ApiRefusal if it does not exist."""
    try:
        file = await context.runtime.store.uploaded_file(id, context.person, context.runtime.services.clock())
    except NotFound:
        what = f"File {id!r:.100} not found. Upload it to /v1/files first."
        raise ApiRefusal(what, param, code="file_not_found") from None
    return Attached(file.media_type, None, file.name, file.blob, file.size)


def attached_url(url: str, param: str, limit: int, name: str | None = None) -> Attached:
    """Return the file in a data URL. Raises ApiRefusal for web addresses, which the server does not fetch."""
    found = parse_data_url(url)
    if found is None or not found.base64 or not is_media_type(found.media_type):
        what = "Send files as data URLs (data:image/png;base64,…). The server fetches no other address."
        raise ApiRefusal(what, param, code="invalid_value")
    return _attached(found.media_type, url[found.begins :], param, limit, name)


def attached_sound(data: str, format: str, param: str, limit: int) -> Attached:
    if format not in _SOUNDS:
        raise ApiRefusal(f"Audio must be {' or '.join(_SOUNDS)}.", param, code="invalid_value")
    return _attached(_SOUNDS[format], data, param, limit, None)


def _attached(media_type: str, text: str, param: str, limit: int, name: str | None) -> Attached:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiRefusal(f"The data is not valid base64: {error}", param, code="invalid_base64") from error
    if not data:
        raise ApiRefusal("The file is empty.", param, code="invalid_value")
    if len(data) > limit:
        raise ApiRefusal(
            f"The file is too large. The limit is {limit} bytes.", param, status=413, code="request_too_large"
        )
    return Attached(media_type, data, name, hashlib.sha256(data).hexdigest(), len(data))


# ── content of a request ──────────────────────────────────────────────────────────────────────────


Content: TypeAlias = tuple[str | Attached, ...]


@dataclass(slots=True, frozen=True)
class UserEntry:
    content: Content


@dataclass(slots=True, frozen=True)
class BroughtCall:
    id: str
    tool: str
    arguments: str


@dataclass(slots=True, frozen=True)
class AssistantEntry:
    """A reply of the assistant. `reasoning` is from the store, because a caller sends only a reference
    to it."""

    texts: tuple[str, ...] = ()
    calls: tuple[BroughtCall, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()


@dataclass(slots=True, frozen=True)
class CallOutput:
    """The output of a call, by the call's ID."""

    call: str
    content: Content


Entry: TypeAlias = UserEntry | AssistantEntry | CallOutput


@dataclass(slots=True)
class Brought:
    """The input in its original order. Adjacent entries of one speaker are merged."""

    system: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        match (self.entries[-1] if self.entries else None, entry):
            case (UserEntry(content=before), UserEntry(content=now)):
                self.entries[-1] = UserEntry((*before, *now))
            case (AssistantEntry() as before, AssistantEntry() as now):
                self.entries[-1] = AssistantEntry(
                    (*before.texts, *now.texts),
                    (*before.calls, *now.calls),
                    (*before.reasoning, *now.reasoning),
                )
            case _:
                self.entries.append(entry)

    @property
    def prompt(self) -> str | None:
        return "\n\n".join(text for text in self.system if text.strip()) or None

    @property
    def earlier(self) -> list[Entry]:
        """The entries up to the assistant's last one."""
        return self.entries[: len(self.entries) - len(self._now())]

    @property
    def outputs(self) -> list[CallOutput]:
        return [entry for entry in self._now() if isinstance(entry, CallOutput)]

    @property
    def sent(self) -> Content:
        """The user's new message."""
        contents = (entry.content for entry in self._now() if isinstance(entry, UserEntry))
        return tuple(piece for content in contents for piece in content)

    def _now(self) -> list[Entry]:
        last = max(
            (at for at, entry in enumerate(self.entries) if isinstance(entry, AssistantEntry)), default=-1
        )
        return self.entries[last + 1 :]


def calls_with_outputs(entries: Iterable[Entry]) -> list[tuple[BroughtCall, CallOutput]]:
    """Return each call in order, with its output. Raises ApiRefusal if a call has none.

    Programs that restart their call numbers repeat IDs: an output belongs to the first call before it that
    has none.
    """
    made: list[BroughtCall] = []
    waiting: dict[str, deque[int]] = {}
    outputs: dict[int, CallOutput] = {}
    for entry in entries:
        match entry:
            case AssistantEntry(calls=calls):
                for call in calls:
                    waiting.setdefault(call.id, deque()).append(len(made))
                    made.append(call)
            case CallOutput(call=id) if waiting.get(id):
                outputs[waiting[id].popleft()] = entry
            case _:
                pass
    for at, call in enumerate(made):
        if at not in outputs:
            raise missing_output(call.id)
    return [(call, outputs[at]) for at, call in enumerate(made)]


def check_calls(brought: Brought) -> None:
    """Raise ApiRefusal if a call has no output, or if an output before the last answer has no call."""
    used = {id(output) for _, output in calls_with_outputs(brought.entries)}
    for entry in brought.earlier:
        if isinstance(entry, CallOutput) and id(entry) not in used:
            what = f"no call found for function call output with call_id {entry.call}"
            raise ApiRefusal(what, "tool_call_id", code="invalid_tool_output")


def missing_output(call: str) -> ApiRefusal:
    return ApiRefusal(f"no tool output found for function call {call}", code="missing_tool_output")


async def parts_of(content: Content, context: Context) -> list[Text | File]:
    """Return the content as message parts, and store its files."""
    return [Text(piece) if isinstance(piece, str) else await piece.stored(context) for piece in content]


async def result_of(output: CallOutput, context: Context) -> ToolResult:
    parts = await parts_of(output.content, context)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return ToolResult(text, attachments=tuple(part for part in parts if isinstance(part, File)))


async def messages_of(entries: Sequence[Entry], conversation: str, context: Context) -> list[Message]:
    """Return a history as messages, each the child of the one before."""
    now = context.runtime.services.clock()
    made = iter(calls_with_outputs(entries))
    messages: list[Message] = []
    turn = new_id("turn")
    for entry in entries:
        parts: Iterable[Part]
        role: Role
        match entry:
            case UserEntry(content=content):
                parts, role, turn = await parts_of(content, context), "user", new_id("turn")
            case AssistantEntry(texts=texts, calls=calls, reasoning=reasoning):
                settled = [await _settled(*next(made), context) for _ in calls]
                parts, role = [*reasoning, *map(Text, filter(None, texts)), *settled], "assistant"
            case _:
                continue
        parent = messages[-1].id if messages else None
        message = Message(new_id("msg"), conversation, parent, role, tuple(parts), turn=turn, created=now)
        if message.parts:
            messages.append(message if role == "user" else replace(message, finish="stop"))
    return messages


def arguments_of(call: BroughtCall) -> Arguments | None:
    """Return the arguments of a call, or None if they cannot be parsed."""
    return parse_arguments(call.arguments or "{}")


async def _settled(call: BroughtCall, output: CallOutput, context: Context) -> ToolCall:
    arguments = arguments_of(call)
    return ToolCall(
        new_id("call"),
        call.tool,
        arguments or {},
        raw=call.arguments if arguments is None else None,
        state=CallState.COMPLETED,
        result=await result_of(output, context),
        provider_id=call.id,
    )


# ── the fields of a body ──────────────────────────────────────────────────────────────────────────


MANY = 10_000  # maximum number of messages or parts of one request

Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]


class StrictBody(BaseModel):
    """A request body. Unknown fields are refused, because they would have no effect."""

    model_config = ConfigDict(extra="forbid")


class Lenient(BaseModel):
    """A part that clients send back as they received it, with fields that no longer have a meaning."""

    model_config = ConfigDict(extra="ignore")


class CallerMessage(Lenient):
    """A message that a caller writes itself. Unknown fields with a value are refused, because they would have
    no effect."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _all_is_read(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if value and isinstance(value, list | dict):
                what = f"unrecognized request argument supplied: {name}"
                raise ApiRefusal(what, name, code="unknown_parameter")
        return self


# ── content ───────────────────────────────────────────────────────────────────────────────────────


class ImageUrl(Lenient):
    url: str


class FileData(Lenient):
    file_data: str | None = None
    file_id: str | None = None
    filename: Annotated[str | None, Field(max_length=255)] = None


class Sound(Lenient):
    data: str
    format: str


class ContentPart(Lenient):
    """A content part of either API: only the names differ."""

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
    file_id: str | None = None
    filename: Annotated[str | None, Field(max_length=255)] = None
    input_audio: Sound | None = None


_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
AnyContent: TypeAlias = str | Annotated[list[ContentPart], Field(max_length=MANY)]


async def read_content(content: AnyContent | None, param: str, context: Context) -> Content:
    if content is None or isinstance(content, str):
        return (content,) if content else ()
    return tuple([await _read(part, f"{param}[{at}]", context) for at, part in enumerate(content)])


async def _read(part: ContentPart, param: str, context: Context) -> str | Attached:
    limit = context.upload_limit
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
        case ContentPart(type="file", file=FileData(file_id=str(id))):
            return await uploaded(context, id, param)
        case ContentPart(type="input_file" | "input_image", file_id=str(id)):
            return await uploaded(context, id, param)
        case ContentPart(type="input_audio", input_audio=Sound(data=data, format=format)):
            return attached_sound(data, format, param, limit)
    what = f"Send a part of type {part.type} with its content as text or base64, or with a 'file_id'."
    raise ApiRefusal(what, param, code="invalid_value")


def text_alone(content: AnyContent | None, param: str) -> str:
    """Return the text of a prompt or of an assistant's message. Raises ApiRefusal if it contains files."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for at, part in enumerate(content):
        text = part.refusal if part.type == "refusal" else part.text
        if part.type not in _TEXTS or text is None:
            raise ApiRefusal(
                "Only user and tool messages can have files.", f"{param}[{at}]", code="invalid_value"
            )
        texts.append(text)
    return "\n".join(texts)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class Function(Lenient):
    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


class OfferedTool(Lenient):
    """A tool. In Chat Completions, the function is nested, and in Responses, it is the tool itself."""

    type: str
    function: Function | None = None
    name: str | None = None
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None

    def spec(self, param: str) -> ToolSpec:
        if self.type != "function":
            what = (
                f"Dragoman does not offer tools of type {self.type!r}. Send "
                "functions, or use an agent's tools."
            )
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
    """Return the option for a tool choice. `auto` is the default and needs none."""
    match choice:
        case None | "auto":
            return {}
        case "none" | "required":
            return {"tool_choice": choice}
        case NamedChoice(type="function", name=name, function=function) if name or function:
            return {"tool_choice": name or (function.name if function else "")}
        case _:
            what = "`tool_choice` must be auto, none, required, or the name of a function."
            raise ApiRefusal(what, "tool_choice", code="unsupported_value")


# ── the answer's type ─────────────────────────────────────────────────────────────────────────────


class JsonSchemaFormat(Lenient):
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None


class AnswerFormat(JsonSchemaFormat):
    """The answer format. In Chat Completions, the schema is nested, and in Responses, it is next to
    the type."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    def spec(self, param: str) -> OutputSpec | None:
        if self.type == "text":
            return None
        if self.type == "json_object":
            return spec_of_schema({"type": "object"})
        schema = (self.json_schema or self).schema_
        if schema is None or schema.get("type") != "object":
            what = "An answer needs a schema of type object at its root."
            raise ApiRefusal(what, f"{param}.schema", code="invalid_json_schema")
        return spec_of_schema(schema)


# ── options ───────────────────────────────────────────────────────────────────────────────────────


class AnswerOptions(StrictBody):
    """The options that both APIs have, and fields that are only accepted with their default value."""

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
        """Return the options of a request under the names that all wires share."""
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
    """Raise ApiRefusal for each field whose value is not supported."""
    for name, wanted, what in refusals:
        value = getattr(body, name)
        if value is not None and wanted(value):
            raise not_offered(name, what)
