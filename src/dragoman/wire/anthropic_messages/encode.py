"""The body of a request to the Messages API. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import Role
from dragoman.messages.parts import CallState, File, Part, Reasoning, Text, ToolCall
from dragoman.messages.request import Request, ToolSpec
from dragoman.wire import files
from dragoman.wire.anthropic_messages.shapes import (
    BUDGETS,
    DOCUMENTS,
    EFFORTS,
    IMAGES,
    NAME,
    SERVER_CALLS,
    SERVER_FIELDS,
    SMALLEST_BUDGET,
    THINKING,
    Block,
    family,
    is_server_block,
)
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
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
from dragoman.wire.options import with_extra
from dragoman.wire.quirks import NO_QUIRKS, Quirks
from dragoman.wire.schemas import one_object, without_limits

Body: TypeAlias = dict[str, JsonValue]


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    turns = _turns(request, attachments)
    body: Body = {"model": request.model, "stream": True}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    body["messages"] = [{"role": turn.role, "content": [*turn.blocks]} for turn in turns]
    body |= _tools(request, quirks, turns) | _options(request, quirks, turns)
    _mark(body)
    return with_extra(body, request.extra)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────

OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."


@dataclass(slots=True)
class RoleBlocks:
    """One message as the API has it. The roles must alternate, and the user's comes first."""

    role: Role
    blocks: list[Block]


def _turns(request: Request, attachments: Attachments) -> list[RoleBlocks]:
    ids = CallIds()
    turns: list[RoleBlocks] = []
    for message in lower(request.messages, speaks=lambda part: _is_server_part(part, request)):
        if message.role == "user":
            _add(turns, "user", [_content_part(part, attachments) for part in message.parts])
            continue
        named = {
            place: ids.next(part) for place, part in enumerate(message.parts) if isinstance(part, ToolCall)
        }
        blocks = [
            block
            for place, part in enumerate(message.parts)
            for block in _assistant_part(part, named.get(place, ""), request)
        ]
        _add(turns, "assistant", blocks)
        results = [
            _result(part, named[place], attachments)
            for place, part in enumerate(message.parts)
            if isinstance(part, ToolCall)
        ]
        if results:
            _add(turns, "user", results)
    if not turns or turns[0].role == "assistant":
        turns.insert(0, RoleBlocks("user", [{"type": "text", "text": OPENING}]))
    continues = turns[-1].role == "assistant" and request.continues
    waiting = _drop_torn_server_calls(turns)
    for turn in turns[:-1] if continues else turns:  # what goes on is sent back as it is
        while turn.role == "assistant" and turn.blocks and turn.blocks[-1]["type"] in THINKING:
            turn.blocks.pop()  # no reply may end in a thought
    if not all(turn.blocks for turn in turns):
        turns = _without_empty(turns)
    if turns[-1].role == "assistant" and not (waiting or continues):
        turns.append(RoleBlocks("user", [{"type": "text", "text": GO_ON}]))
    return turns


def _without_empty(turns: list[RoleBlocks]) -> list[RoleBlocks]:
    left: list[RoleBlocks] = []
    for turn in turns:
        if turn.blocks:
            _add(left, turn.role, turn.blocks)
    return left


def _add(turns: list[RoleBlocks], role: Role, blocks: list[Block]) -> None:
    if turns and turns[-1].role == role:
        turns[-1].blocks += blocks
    else:
        turns.append(RoleBlocks(role, blocks))


def _assistant_part(part: Part, id: str, request: Request) -> Iterator[Block]:
    match part:
        case Text():
            yield {"type": "text", "text": part.text}
        case ToolCall():
            yield {"type": "tool_use", "id": id, "name": safe_name(part), "input": {**asked_arguments(part)}}
        case Reasoning() if may_replay(part, NAME, request.model):
            if isinstance(part.opaque, dict):
                theirs = is_server_block(str(part.opaque.get("type")))
                if not theirs or _is_server_part(part, request):
                    yield part.opaque
            elif part.signature is not None:
                yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case _:
            pass


def _is_server_part(part: Part, request: Request) -> bool:
    """Whether it is what their own tools did, and may go back: without these in the request it would be
    refused."""
    return (
        isinstance(part, Reasoning)
        and isinstance(part.opaque, dict)
        and is_server_block(str(part.opaque.get("type")))
        and may_replay(part, NAME, request.model)
        and not request.extra.keys().isdisjoint(SERVER_FIELDS)
    )


def _result(call: ToolCall, id: str, attachments: Attachments) -> Block:
    brought = [_content_part(file, attachments) for file in result_files(call)]
    content: list[JsonValue] = [{"type": "text", "text": result_text(call)}, *brought]
    result: Block = {"type": "tool_result", "tool_use_id": id, "content": content}
    if call.state is not CallState.COMPLETED and not brought:  # an error may hold nothing but text
        result["is_error"] = True
    return result


def carries(file: File) -> bool:
    return media_type(file) in (*IMAGES, *DOCUMENTS) or is_text(file)


def _content_part(part: Part, attachments: Attachments) -> Block:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    assert isinstance(part, File)
    held = media_type(part)
    type = "image" if held in IMAGES else "document" if held in DOCUMENTS else None
    source = _source(part, attachments) if type else None
    if source is None:
        return {"type": "text", "text": files.text_of(part, attachments)}
    block: Block = {"type": type, "source": source}
    if type == "document" and part.name:
        block["title"] = part.name
    return block


def _source(file: File, attachments: Attachments) -> Body | None:
    if data := files.base64_of(file, attachments):
        return {"type": "base64", "media_type": media_type(file), "data": data}
    return {"type": "url", "url": file.url} if file.url else None


def _drop_torn_server_calls(turns: list[RoleBlocks]) -> bool:
    """Leave out calls of the provider's own tools that never got a result, and results without a call.

    The last reply may still wait for one: it goes on from there. True if it does.
    """
    replies = [turn for turn in turns if turn.role == "assistant"]
    called = {block["id"] for turn in replies for block in turn.blocks if block["type"] in SERVER_CALLS}
    answered = {block["tool_use_id"] for turn in replies for block in turn.blocks if "tool_use_id" in block}
    behind = turns[-1].blocks if turns[-1].role == "user" else []
    running = all(block["type"] == "tool_result" for block in behind)
    waiting = False
    for turn in replies:
        remaining: list[Block] = []
        for block in turn.blocks:
            torn = block["type"] in SERVER_CALLS and block["id"] not in answered
            if torn and turn is replies[-1] and running:
                waiting = True
            elif torn or ("tool_use_id" in block and block["tool_use_id"] not in called):
                continue
            remaining.append(block)
        turn.blocks = remaining
    return waiting


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks, turns: list[RoleBlocks]) -> Body:
    if not request.tools:
        return _tools_of_the_past(turns)
    body: Body = {"tools": [_tool(tool) for tool in request.tools]}
    parallel = request.options.get("parallel_tool_calls") is not False or quirks.no_parallel_flag
    choice = _choice(request, quirks)
    if choice is not None or not parallel:
        body["tool_choice"] = choice = choice or {"type": "auto"}
        if not parallel and choice["type"] != "none":
            choice["disable_parallel_tool_use"] = True
    return body


def _choice(request: Request, quirks: Quirks) -> Body | None:
    match request.tool_choice:
        case None:
            return None
        case "auto" | "none" as same:
            return {"type": same}
        case _ if quirks.no_forced_choice:
            return {"type": "auto"}
        case "required":
            return {"type": "any"}
        case name:
            return {"type": "tool", "name": name}


def _tool(tool: ToolSpec) -> Body:
    return {"name": tool.name, "description": description(tool), "input_schema": one_object(tool.parameters)}


def _tools_of_the_past(turns: list[RoleBlocks]) -> Body:
    """A history with calls in it must come with tools, even if none is to be used any more."""
    names = {
        str(block["name"]): None for turn in turns for block in turn.blocks if block["type"] == "tool_use"
    }
    if not names:
        return {}
    tools: list[JsonValue] = [
        {"name": name, "description": "Not available any more.", "input_schema": {"type": "object"}}
        for name in names
    ]
    return {"tools": tools, "tool_choice": {"type": "none"}}


# ── options ───────────────────────────────────────────────────────────────────────────────────────

OPTIONS = frozenset(
    {
        *("temperature", "top_p", "top_k", "max_tokens", "stop", "response_schema"),
        *("reasoning_effort", "reasoning_budget", "tool_choice", "parallel_tool_calls"),
    }
)


def _options(request: Request, quirks: Quirks, turns: list[RoleBlocks]) -> Body:
    options, model = request.options, family(request.model)
    limit = options.get("max_tokens")
    if not isinstance(limit, int):
        limit = model.max_tokens
    body: Body = {"max_tokens": limit}
    thinking = _thinking(request, quirks, turns, limit)
    if thinking is not None:
        body["thinking"] = thinking
    elif model.sampling:
        body |= _sampling(options)
    stop = options.get("stop")
    stops = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    if stops := [word for word in stops if isinstance(word, str) and word.strip()]:
        body["stop_sequences"] = [*stops]
    output: Body = {}
    effort = options.get("reasoning_effort")
    if isinstance(effort, str) and effort != "none" and model.thinking == "adaptive":
        output["effort"] = EFFORTS.get(effort, effort)
    if isinstance(schema := options.get("response_schema"), dict):
        output["format"] = {"type": "json_schema", "schema": without_limits(schema)}
    if output:
        body["output_config"] = output
    return body


def _sampling(options: Body) -> Body:
    """Temperature or top_p: the newer models refuse both together. Their temperatures end at 1."""
    temperature, top_p, top_k = options.get("temperature"), options.get("top_p"), options.get("top_k")
    body: Body = {} if top_k is None else {"top_k": top_k}
    if isinstance(temperature, int | float):
        return body | {"temperature": min(temperature, 1)}
    return body if top_p is None else body | {"top_p": top_p}


def _thinking(request: Request, quirks: Quirks, turns: list[RoleBlocks], limit: int) -> Body | None:
    """How the model is to think; None where it is not to, or may not."""
    effort, budget = request.options.get("reasoning_effort"), request.options.get("reasoning_budget")
    how = family(request.model).thinking
    choice = _choice(request, quirks) if request.tools else None
    forced = choice is not None and choice["type"] in ("any", "tool")
    if (effort in (None, "none") and not budget) or how == "no" or forced:
        return None
    if how == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    tokens = budget if isinstance(budget, int) else BUDGETS.get(str(effort), BUDGETS["medium"])
    tokens = min(tokens, limit - SMALLEST_BUDGET)  # the answer needs room, too
    if tokens < SMALLEST_BUDGET or _goes_on_without_thoughts(turns):
        return None
    return {"type": "enabled", "budget_tokens": tokens}


def _goes_on_without_thoughts(turns: list[RoleBlocks]) -> bool:
    """Whether results are to follow calls that were made without thinking, or by another model.

    A model that is given a budget must find its own thoughts in front of the calls it goes on from.
    """
    if len(turns) < 2 or not any(block["type"] == "tool_result" for block in turns[-1].blocks):
        return False
    return turns[-2].blocks[0]["type"] not in THINKING


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────


def _mark(body: Body) -> None:
    """R2: what stays the same from step to step is marked: tools, system prompt, the last two user turns."""
    messages = body["messages"]
    assert isinstance(messages, list)
    users = [turn["content"] for turn in messages if isinstance(turn, dict) and turn["role"] == "user"]
    for blocks in (body.get("tools"), body.get("system"), *users[-2:]):
        if isinstance(blocks, list) and isinstance(last := blocks[-1], dict):
            last["cache_control"] = {"type": "ephemeral"}
