"""Define the options of a request: the names all wires share, their types, and the layers they come from.

A wire lists the options it supports (`Wire.options`). Any other option goes into the body unchanged if the
provider is known to accept it (`extra` in the catalog), and is refused otherwise: nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic requires this one on Python 3.11

from dragoman.errors import BadRequest
from dragoman.messages.message import ToolCall
from dragoman.messages.request import Request, name_key
from dragoman.sentences import sentence
from dragoman.wire.endpoint import Quirks

Options: TypeAlias = Mapping[str, JsonValue]
Body: TypeAlias = dict[str, JsonValue]
Extra: TypeAlias = bool | Collection[str]
"""The options that a provider accepts in addition to those of its wire: everything, nothing, or these."""

Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


@with_config(strict=True)
class CommonOptions(TypedDict, total=False):
    """The options that mean the same on every wire that has them."""

    temperature: Annotated[Number, Field(ge=0)]
    top_p: Annotated[Number, Field(ge=0, le=1)]
    top_k: int
    seed: int
    stop: Annotated[list[str], BeforeValidator(_listed)]
    presence_penalty: Number
    frequency_penalty: Number
    max_tokens: Annotated[int, Field(gt=0)]
    tool_choice: str  # auto, none, required, or the name of a tool; for the first request of a turn
    parallel_tool_calls: bool
    reasoning_effort: str
    reasoning_budget: Annotated[int, Field(ge=0)]
    reasoning_summary: str
    response_schema: dict[str, JsonValue]
    hosted_tools: list[str | dict[str, JsonValue]]  # the provider's own tools, as it names them
    logprobs: bool | Annotated[int, Field(ge=0)]  # of each token; a number: with that many alternatives
    verbosity: str
    service_tier: str
    prompt_cache_key: str
    cache_lifetime: str  # how long a prompt stays in the provider's cache: 5m, 1h, 24h
    safety_identifier: str  # an opaque identifier of the user
    metadata: dict[str, JsonValue]
    truncation: str


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
COMMON = frozenset(CommonOptions.__annotations__)

# Names from other libraries, and our names for them.
_MEANT = {
    "effort": "reasoning_effort",
    "reasoning": "reasoning_effort",
    "thinking": "reasoning_effort",
    "thinkingbudget": "reasoning_budget",
    "budgettokens": "reasoning_budget",
    "maxoutputtokens": "max_tokens",
    "maxcompletiontokens": "max_tokens",
    "maxnewtokens": "max_tokens",
    "maxlength": "max_tokens",
    "stopsequences": "stop",
    "responseformat": "response_schema",
    "jsonschema": "response_schema",
    "randomseed": "seed",
    "toplogprobs": "logprobs",
    "responselogprobs": "logprobs",
    "promptcacheretention": "cache_lifetime",
    "cachettl": "cache_lifetime",
    "ttl": "cache_lifetime",
    "cachecontrol": "cache_lifetime",
    "tools": "hosted_tools",
    "servertools": "hosted_tools",
    "builtintools": "hosted_tools",
    "user": "safety_identifier",
    "userid": "safety_identifier",
}

_WHOLE = ("response_schema",)  # An object that is one value: never merged, and null has a meaning in it.

_ADDED = ("tools", "include", "anthropic_beta")  # lists of a body that can be extended

# ── layers ────────────────────────────────────────────────────────────────────────────────────────


def merge_options(*layers: Options) -> Body:
    """Merge layers: the later wins, objects are merged. None stays, to remove options of the layers below."""
    merged: Body = {}
    for layer in layers:
        for name, value in layer.items():
            below = merged.get(name)
            if isinstance(value, dict) and name not in _WHOLE:
                merged[name] = merge_options(below if isinstance(below, dict) else {}, value)
            else:
                merged[name] = value
    return merged


def without_removed(options: Options) -> Body:
    """Return the options that remain when all layers are merged: None has removed what was below it."""
    return {
        name: without_removed(value) if isinstance(value, dict) and name not in _WHOLE else value
        for name, value in options.items()
        if value is not None
    }


# ── checks ────────────────────────────────────────────────────────────────────────────────────────


def check_options(
    options: Options,
    *,
    model: str,
    words: Collection[str],
    extra: Extra,
    types: TypeAdapter[Any] | None = None,
) -> None:
    """Raise BadRequest if an option has the wrong type, or is supported neither by the wire nor the provider.

    `types` has the types of all options, if they differ from those that most wires share.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if not given:
        return
    taken = set(words) if isinstance(extra, bool) else {*words, *extra}
    for name in given:
        if extra is not True and name not in taken:
            raise BadRequest(
                sentence("option.unknown", model=model, name=name, nearest=_nearest(name, taken))
            )
    typed = COMMON if types is None else words
    try:
        (types or _common()).validate_python({name: value for name, value in given.items() if name in typed})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        problem = str(fault["msg"])
        raise BadRequest(
            sentence(
                "option.wrong",
                option=_path(fault["loc"]),
                first=problem[0].lower(),
                rest=problem[1:],
                given=fault["input"],
            )
        ) from error


def refuse_together(model: str, options: Options, first: str, second: str) -> None:
    """Raise BadRequest that names both options, if both are set for a provider that accepts only one
    of them."""
    if options.get(first) is not None and options.get(second) is not None:
        raise BadRequest(sentence("option.together", model=model, first=first, second=second))


def check_tool_options(options: Options, *, model: str, quirks: Quirks) -> None:
    """Raise BadRequest for an option about tools that this provider refuses."""
    choice = options.get("tool_choice")
    if quirks.no_forced_choice and choice not in (None, "auto", "none"):
        raise BadRequest(
            sentence("option.takes", name="tool_choice", model=model, taken="auto, none", given=choice)
        )
    if quirks.no_parallel_flag and options.get("parallel_tool_calls") is not None:
        raise BadRequest(sentence("option.not_taken", name="parallel_tool_calls", model=model))


def check_effort(options: Options, *, model: str) -> str | None:
    """Return the option that requests reasoning, if one is set, for wires with their own terms for it.

    Raises BadRequest if two are set, or one has an unknown value.
    """
    effort, budget = options.get("reasoning_effort"), options.get("reasoning_budget")
    refuse_together(model, options, "reasoning_effort", "reasoning_budget")
    if effort is not None and effort not in EFFORTS:
        raise BadRequest(
            sentence(
                "option.takes", name="reasoning_effort", model=model, taken=", ".join(EFFORTS), given=effort
            )
        )
    if budget:
        return "reasoning_budget"
    return "reasoning_effort" if effort not in (None, "none") else None


def own_fields(options: Options, words: Collection[str]) -> Body:
    """Return the options that go into the body unchanged."""
    return {name: value for name, value in options.items() if name not in words and value is not None}


@cache
def _common() -> TypeAdapter[CommonOptions]:
    return TypeAdapter(CommonOptions)


def _path(steps: tuple[int | str, ...]) -> str:
    name, *inner = steps
    return f"{name}{''.join(f'[{step}]' if isinstance(step, int) else f'.{step}' for step in inner)}"


def _nearest(name: str, taken: Collection[str]) -> str:
    key = name_key(name)
    by_key = {name_key(known): known for known in sorted(taken)}
    meant = _MEANT.get(key)
    near = [meant] if meant in taken else [by_key[one] for one in get_close_matches(key, by_key, n=1)]
    if near:
        return f"Did you mean {near[0]}?"
    listed = ", ".join(sorted(taken))
    return f"It takes {listed}. List what else its provider takes as `extra` in dragoman.toml."


# ── the body ──────────────────────────────────────────────────────────────────────────────────────


def with_tool_choice(request: Request) -> Request:
    """Return the request with the option `tool_choice` in its place.

    It applies to the first request of a turn: if forced again after every result, a model could never answer.
    """
    wanted = request.options.get("tool_choice")
    if not isinstance(wanted, str):
        return request
    options = {name: value for name, value in request.options.items() if name != "tool_choice"}
    last = request.messages[-1].parts if request.messages else ()
    if any(isinstance(part, ToolCall) for part in last):
        return replace(request, options=options)
    return replace(request, options=options, tool_choice=wanted)


def hosted_tools(options: Options) -> list[JsonValue]:
    """Return the provider's own tools that are requested. A string means a tool of that type without
    settings."""
    wanted = options.get("hosted_tools")
    tools = wanted if isinstance(wanted, list) else []
    return [{"type": tool} if isinstance(tool, str) else tool for tool in tools]


def with_extra(body: Body, extra: Options) -> Body:
    """Return the body with extra fields, which win. Groups are merged. Lists of tools are extended."""
    merged = dict(body)
    for name, value in extra.items():
        held = merged.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            merged[name] = with_extra(held, value)
        elif name in _ADDED and isinstance(held, list) and isinstance(value, list):
            merged[name] = [*held, *value]
        else:
            merged[name] = value
    return merged


# The options of image and audio models: their names and types.


@with_config(strict=True)
class ImageOptions(TypedDict, total=False):
    """Options for making or editing images."""

    n: Annotated[int, Field(ge=1, le=10)]  # number of images
    size: Annotated[str, Field(pattern=r"^(auto|\d{2,5}x\d{2,5})$")]  # 1024x1536, or auto
    aspect_ratio: Annotated[str, Field(pattern=r"^\d{1,2}:\d{1,2}$")]
    quality: Literal["auto", "low", "medium", "high", "standard", "hd"]
    background: Literal["auto", "transparent", "opaque"]
    format: Literal["png", "jpeg", "webp"]
    compression: Annotated[int, Field(ge=0, le=100)]
    moderation: Literal["auto", "low"]
    style: str
    seed: int
    partial_images: Annotated[int, Field(ge=0, le=3)]  # previews during generation
    fidelity: Literal["low", "high"]  # how closely an edited image follows its original
    mask: str  # the name of the attached file that marks the area to edit


@with_config(strict=True)
class TranscriptionOptions(TypedDict, total=False):
    """Options for transcription. The text of the message, if any, is the prompt: names, spellings."""

    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$")]
    temperature: Annotated[float, Field(ge=0, le=1)]
    timestamps: Literal["segment", "word"]


@with_config(strict=True)
class SpeechOptions(TypedDict, total=False):
    """Options for speech."""

    voice: str
    format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
    speed: Annotated[float, Field(ge=0.25, le=4)]
    instructions: str  # how it must sound


def check_media_options(options: Mapping[str, JsonValue], words: Any, *, model: str, extra: Extra) -> None:
    """Raise BadRequest for an option that is neither one of `words` nor `extra`, or has the wrong type."""
    check_options(options, model=model, words=words.__annotations__, extra=extra, types=_adapter(words))


def option_schemas() -> dict[str, JsonValue]:
    """Return the options of each type of model as a JSON schema, for building forms."""
    words = {
        "image-gen": ImageOptions,
        "image-edit": ImageOptions,
        "audio-stt": TranscriptionOptions,
        "audio-tts": SpeechOptions,
    }
    return {type: _adapter(one).json_schema() for type, one in words.items()}


@cache
def _adapter(words: Any) -> TypeAdapter[Any]:
    return TypeAdapter(words)
