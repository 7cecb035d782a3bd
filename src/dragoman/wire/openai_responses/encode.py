"""Build the body of a request to the Responses API. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import File, Part, ProviderItem, Reasoning, Text, ToolCall, json_text
from dragoman.messages.request import FIND_TOOLS, Request, RequestMessage, ToolSpec, found_by, found_in
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files import file_parts as files
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.lowering import (
    CallIds,
    asked_arguments,
    description,
    lower,
    may_replay,
    result_files,
    result_text,
    safe_name,
)
from dragoman.wire.openai_responses.shapes import (
    CHANCES,
    DOCUMENTS,
    ENCRYPTED_REASONING,
    IMAGES,
    NAME,
    searches_tools,
)
from dragoman.wire.options import hosted_tools, with_extra
from dragoman.wire.schemas.fields import one_object, schema_name
from dragoman.wire.schemas.strict import strict_form

Body: TypeAlias = dict[str, JsonValue]
_BY_CLIENT: Body = {"execution": "client", "status": "completed"}


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    body: Body = {"model": request.model, "input": list(_input(request, quirks, attachments)), "stream": True}
    if request.system:
        body["instructions"] = request.system
    body["store"] = False
    include: list[JsonValue] = []
    if not quirks.no_encrypted_reasoning:
        include.append(ENCRYPTED_REASONING)  # We receive the reasoning, because OpenAI stores nothing.
    chances = request.options.get("logprobs")
    if chances is not None and chances is not False:
        include.append(CHANCES)
    if include:
        body["include"] = include
    return with_extra(body | _tools(request, quirks) | _options(request, quirks), request.extra)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def _input(request: Request, quirks: Quirks, attachments: Attachments) -> Iterator[Body]:
    ids = CallIds(quirks.tool_ids)
    custom = _custom_tools(request)
    searches = quirks.tool_search and searches_tools(request.model)
    found = {spec.name: spec for spec in request.tools if spec.name in found_in(request)} if searches else {}
    for message in lower(request.messages, speaks=lambda part: _is_own(part, request.model)):
        if message.role == "user":
            yield {"role": "user", "content": _content(message.parts, attachments)}
        else:
            calls = [(ids.next(part), part) for part in message.parts if isinstance(part, ToolCall)]
            yield from _assistant(message, iter(calls), request.model, custom, searches=searches)
            for id, call in calls:
                if searches and call.tool == FIND_TOOLS:
                    loaded: list[JsonValue] = [
                        _tool(found[name], quirks) for name in found_by(call) if name in found
                    ]
                    yield {"type": "tool_search_output", "call_id": id, **_BY_CLIENT, "tools": loaded}
                    continue
                type = "custom_tool_call_output" if _is_custom(call, custom) else "function_call_output"
                yield {"type": type, "call_id": id, "output": _output(call, attachments)}


def _is_own(part: Part, model: str) -> bool:
    """Return whether a part is the provider's own item that this model made."""
    return isinstance(part, ProviderItem) and may_replay(part, NAME, model) and isinstance(part.opaque, dict)


def _assistant(
    message: RequestMessage,
    calls: Iterator[tuple[str, ToolCall]],
    model: str,
    custom: set[str],
    *,
    searches: bool = False,
) -> Iterator[Body]:
    """Yield a reply, item by item in order. Reasoning is sent only together with the item after it."""
    thoughts: list[Body] = []
    for part in message.parts:
        if isinstance(part, Reasoning):
            if may_replay(part, NAME, model) and isinstance(part.opaque, dict):
                thoughts.append(part.opaque)
            continue
        yield from thoughts
        thoughts.clear()
        if isinstance(part, Text):
            said: Body = {"role": "assistant", "content": part.text}
            yield said if part.phase is None else {**said, "phase": part.phase}
        elif isinstance(part, ProviderItem):
            assert isinstance(part.opaque, dict)  # otherwise `lower` has dropped it
            yield part.opaque
        else:
            id, call = next(calls)
            if searches and call.tool == FIND_TOOLS:
                asked = {**asked_arguments(call)}
                yield {"type": "tool_search_call", "call_id": id, **_BY_CLIENT, "arguments": asked}
            else:
                yield _call(id, call, custom)


def _custom_tools(request: Request) -> set[str]:
    """Return the names of tools that take a text instead of an object."""
    tools = [tool for tool in hosted_tools(request.options) if isinstance(tool, dict)]
    return {str(tool.get("name")) for tool in tools if tool.get("type") == "custom"}


def _is_custom(call: ToolCall, custom: set[str]) -> bool:
    return call.tool in custom and isinstance(asked_arguments(call).get("input"), str)


def _call(id: str, call: ToolCall, custom: set[str]) -> Body:
    if _is_custom(call, custom):
        text = asked_arguments(call)["input"]
        return {"type": "custom_tool_call", "call_id": id, "name": call.tool, "input": text}
    arguments = json_text(asked_arguments(call))
    return {"type": "function_call", "call_id": id, "name": safe_name(call), "arguments": arguments}


def _output(call: ToolCall, attachments: Attachments) -> str | list[JsonValue]:
    return _content((Text(result_text(call)), *result_files(call)), attachments)


def _content(parts: tuple[Part, ...], attachments: Attachments) -> str | list[JsonValue]:
    """Return the content. Text alone is sent as a string, which every imitator understands."""
    content = [_content_part(part, attachments) for part in parts]
    texts = [part["text"] for part in content if part["type"] == "input_text"]
    return "\n\n".join(map(str, texts)) if len(texts) == len(content) else [*content]


def carries(file: File) -> bool:
    return media_type(file) in (*IMAGES, *DOCUMENTS) or is_text(file)


def _content_part(part: Part, attachments: Attachments) -> Body:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    assert isinstance(part, File)
    type = media_type(part)
    if type in (*IMAGES, *DOCUMENTS) and (id := files.id_of(part, attachments)):
        kind: Body = {"type": "input_image", "detail": "auto"} if type in IMAGES else {"type": "input_file"}
        return {**kind, "file_id": id}
    data = files.base64_of(part, attachments) if type in DOCUMENTS else None
    if type in IMAGES and files.is_there(part):
        return {"type": "input_image", "image_url": files.address_of(part, attachments), "detail": "auto"}
    if data:
        address = f"data:{type};base64,{data}"
        return {"type": "input_file", "filename": part.name or "file", "file_data": address}
    if type in DOCUMENTS and part.url is not None:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_text", "text": files.text_of(part, attachments)}


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks) -> Body:
    hosted = hosted_tools(request.options)
    custom = _custom_tools(request)
    searches = quirks.tool_search and searches_tools(request.model)
    # A tool that was found is defined where it was found.
    elsewhere = custom | found_in(request) if searches else custom
    own = [
        _search_tool(tool) if searches and tool.name == FIND_TOOLS else _tool(tool, quirks)
        for tool in request.tools
        if tool.name not in elsewhere
    ]
    if not own and not hosted:
        return {}
    body: Body = {"tools": [*own, *hosted]}
    if (choice := request.tool_choice) is not None:
        if choice in ("auto", "none"):
            body["tool_choice"] = choice
        elif quirks.no_forced_choice:
            body["tool_choice"] = "auto"
        elif choice == "required":
            body["tool_choice"] = choice
        else:
            body["tool_choice"] = _chosen(choice, request)
    parallel = request.options.get("parallel_tool_calls")
    if parallel is not None and not quirks.no_parallel_flag:
        body["parallel_tool_calls"] = parallel
    return body


def _chosen(name: str, request: Request) -> Body:
    if any(tool.name == name for tool in request.tools):
        return {"type": "custom" if name in _custom_tools(request) else "function", "name": name}
    types = {tool.get("type") for tool in hosted_tools(request.options) if isinstance(tool, dict)}
    return {"type": name} if name in types else {"type": "function", "name": name}


def _search_tool(tool: ToolSpec) -> Body:
    """Return OpenAI's form of `find_tools`: tools it finds are loaded at the end, after what is cached."""
    body: Body = {"type": "tool_search", "execution": "client", "description": tool.description}
    return {**body, "parameters": one_object(tool.parameters)}


def _tool(tool: ToolSpec, quirks: Quirks) -> Body:
    form = strict_form(tool.parameters) if quirks.strict_tools else None
    parameters = one_object(tool.parameters) if form is None else form
    body: Body = {"type": "function", "name": tool.name}
    body |= {"description": description(tool), "parameters": parameters}
    if not quirks.no_strict:
        body["strict"] = form is not None  # The default is true here.
    return body


# ── options ───────────────────────────────────────────────────────────────────────────────────────

SAME = (
    *("temperature", "top_p", "service_tier", "prompt_cache_key", "safety_identifier"),
    *("metadata", "truncation"),
)
REASONING = {"reasoning_effort": "effort", "reasoning_summary": "summary"}
OPTIONS = frozenset(
    {
        *SAME,
        *REASONING,
        *("max_tokens", "response_schema", "tool_choice", "parallel_tool_calls"),
        *("hosted_tools", "logprobs", "verbosity", "cache_lifetime"),
    }
)


def _options(request: Request, quirks: Quirks) -> Body:
    options = request.options
    body: Body = {name: options[name] for name in SAME if options.get(name) is not None}
    if (limit := options.get("max_tokens")) is not None:
        body["max_output_tokens"] = limit
    if (lifetime := options.get("cache_lifetime")) is not None:
        body["prompt_cache_retention"] = lifetime
    if (chances := options.get("logprobs")) and chances is not True:
        body["top_logprobs"] = chances
    if reasoning := {REASONING[name]: options[name] for name in REASONING if options.get(name) is not None}:
        body["reasoning"] = {**reasoning}
    text: Body = {}
    if (schema := options.get("response_schema")) is not None:
        form = None if quirks.no_strict else strict_form(schema, optional=False)
        format: Body = {"type": "json_schema", "name": schema_name(schema)}
        format["schema"] = schema if form is None else form
        if not quirks.no_strict:
            format["strict"] = form is not None
        text["format"] = format
    if (verbosity := options.get("verbosity")) is not None:
        text["verbosity"] = verbosity
    return body | {"text": text} if text else body
