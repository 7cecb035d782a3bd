"""Build the body of a chat completion. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import File, Part, Reasoning, Text, ToolCall, json_text
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files import file_parts as files
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.lowering import (
    CallIds,
    asked_arguments,
    description,
    lower,
    may_replay,
    result_text,
    safe_name,
)
from dragoman.wire.openai_chat.shapes import AUDIO_FORMATS, DOCUMENTS, IMAGES, NAME, THINKING
from dragoman.wire.options import hosted_tools, with_extra
from dragoman.wire.schemas.fields import one_object, schema_name
from dragoman.wire.schemas.strict import strict_form

Body: TypeAlias = dict[str, JsonValue]


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    body: Body = {
        "model": request.model,
        "messages": list(_messages(request, quirks, attachments)),
        "stream": True,
    }
    if not quirks.no_stream_usage:
        body["stream_options"] = {"include_usage": True}
    return with_extra(body | _tools(request, quirks) | _options(request, quirks), request.extra)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def _messages(request: Request, quirks: Quirks, attachments: Attachments) -> Iterator[Body]:
    if request.system:
        yield {"role": "system", "content": request.system}
    ids = CallIds(quirks.tool_ids)
    calls: list[tuple[str, ToolCall]] = []
    for message in lower(request.messages, files_apart=True):
        if message.role == "user":
            if calls and quirks.reply_after_results:
                yield {"role": "assistant", "content": "I have the results."}
            yield {"role": "user", "content": _content(message.parts, attachments)}
            calls = []
        else:
            calls = [(ids.next(part), part) for part in message.parts if isinstance(part, ToolCall)]
            yield _assistant(message, calls, request.model, quirks)
            for id, call in calls:
                yield {"role": "tool", "tool_call_id": id, "content": result_text(call)}


def _assistant(
    message: RequestMessage, calls: list[tuple[str, ToolCall]], model: str, quirks: Quirks
) -> Body:
    body: Body = {"role": "assistant", "content": _joined(message.parts) or None}
    thoughts = [
        part for part in message.parts if isinstance(part, Reasoning) and may_replay(part, NAME, model)
    ]
    if details := [
        detail for thought in thoughts if isinstance(thought.opaque, list) for detail in thought.opaque
    ]:
        body["reasoning_details"] = details
    if calls:
        body["tool_calls"] = [_call(id, call, model, quirks) for id, call in calls]
        if quirks.reasoning_field is not None:
            body[quirks.reasoning_field] = "".join(thought.text for thought in thoughts)
        elif not details:
            body |= _as_they_came(thoughts, body["content"])
    return body


def _as_they_came(thoughts: list[Reasoning], text: JsonValue) -> Body:
    """Return reasoning in its original field: many models are trained on it, especially between calls."""
    named = [thought for thought in thoughts if thought.field_name and thought.text]
    if not named:
        return {}
    name, thought = named[0].field_name or "", "".join(one.text for one in named)
    if name != THINKING:
        return {name: thought}
    block: Body = {"type": THINKING, "thinking": [{"type": "text", "text": thought}]}
    return {"content": [block, {"type": "text", "text": text}] if text else [block]}


def _call(id: str, call: ToolCall, model: str, quirks: Quirks) -> Body:
    function: Body = {"name": safe_name(call), "arguments": json_text(asked_arguments(call))}
    body: Body = {"id": id, "type": "function", "function": function}
    ours = quirks.call_signatures or call.signed_by == model
    if call.signature is not None and ours:  # Gemini's, which refuses a call without it
        body["extra_content"] = {"google": {"thought_signature": call.signature}}
    return body


def _joined(parts: tuple[Part, ...]) -> str:
    """Return the text of a reply. Text after a call or reasoning becomes a separate paragraph."""
    text = ""
    before: Part | None = None
    for part in parts:
        if isinstance(part, Text):
            text += part.text if not text or isinstance(before, Text) else f"\n\n{part.text}"
        before = part
    return text


def _content(parts: tuple[Part, ...], attachments: Attachments) -> str | list[JsonValue]:
    """Return the content. Text alone is sent as a string, which every imitator understands."""
    content = [_content_part(part, attachments) for part in parts]
    texts = [part["text"] for part in content if part["type"] == "text"]
    return "\n\n".join(map(str, texts)) if len(texts) == len(content) else [*content]


def carries(file: File) -> bool:
    return media_type(file) in (*IMAGES, *DOCUMENTS, *AUDIO_FORMATS) or is_text(file)


def _content_part(part: Part, attachments: Attachments) -> Body:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    assert isinstance(part, File)
    type = media_type(part)
    sound = AUDIO_FORMATS.get(type)
    data = files.base64_of(part, attachments) if type in DOCUMENTS or sound else None
    if type in IMAGES and files.is_there(part):
        return {"type": "image_url", "image_url": {"url": files.address_of(part, attachments)}}
    if sound and data:
        return {"type": "input_audio", "input_audio": {"data": data, "format": sound}}
    if data:
        address = f"data:{type};base64,{data}"
        return {"type": "file", "file": {"filename": part.name or "file", "file_data": address}}
    return {"type": "text", "text": files.text_of(part, attachments)}


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks) -> Body:
    tools = [*(_tool(tool, quirks) for tool in request.tools), *hosted_tools(request.options)]
    if not tools:
        return {}
    body: Body = {"tools": tools}
    if (choice := request.tool_choice) is not None:
        if choice in ("auto", "none"):
            body["tool_choice"] = choice
        elif quirks.no_forced_choice:
            body["tool_choice"] = "auto"
        elif choice == "required":
            body["tool_choice"] = choice
        else:
            body["tool_choice"] = {"type": "function", "function": {"name": choice}}
    parallel = request.options.get("parallel_tool_calls")
    if parallel is not None and not quirks.no_parallel_flag:
        body["parallel_tool_calls"] = parallel
    return body


def _tool(tool: ToolSpec, quirks: Quirks) -> Body:
    form = strict_form(tool.parameters) if quirks.strict_tools else None
    parameters = one_object(tool.parameters) if form is None else form
    body: Body = {"name": tool.name, "description": description(tool), "parameters": parameters}
    if form is not None:
        body["strict"] = True
    return {"type": "function", "function": body}


# ── options ───────────────────────────────────────────────────────────────────────────────────────

SAME = (
    *("temperature", "top_p", "stop", "presence_penalty", "frequency_penalty", "reasoning_effort"),
    *("verbosity", "service_tier", "prompt_cache_key", "safety_identifier", "metadata"),
)
OPTIONS = frozenset(
    {
        *SAME,
        *("max_tokens", "seed", "response_schema", "tool_choice", "parallel_tool_calls"),
        *("hosted_tools", "logprobs", "cache_lifetime"),
    }
)


def _options(request: Request, quirks: Quirks) -> Body:
    options = request.options
    body: Body = {name: options[name] for name in SAME if options.get(name) is not None}
    if (limit := options.get("max_tokens")) is not None:
        body[quirks.max_tokens_field] = limit
    if (seed := options.get("seed")) is not None:
        body[quirks.seed_field] = seed
    if (lifetime := options.get("cache_lifetime")) is not None:
        body["prompt_cache_retention"] = lifetime
    chances = options.get("logprobs")
    if chances is not None and chances is not False:
        body["logprobs"] = True
        if chances is not True and chances:
            body["top_logprobs"] = chances
    if (schema := options.get("response_schema")) is not None:
        form = None if quirks.no_strict else strict_form(schema, optional=False)
        format: Body = {"name": schema_name(schema), "schema": schema if form is None else form}
        if not quirks.no_strict:
            format["strict"] = form is not None
        body["response_format"] = {"type": "json_schema", "json_schema": format}
    return body
