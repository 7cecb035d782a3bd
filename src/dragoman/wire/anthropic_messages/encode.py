"""Build the body of a request to the Messages API. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.request import Request, ToolSpec, found_in
from dragoman.sentences import sentence
from dragoman.wire.anthropic_messages.blocks import MCP_BETA, hosted_of, turns_of
from dragoman.wire.anthropic_messages.shapes import (
    BUDGETS,
    EFFORTS,
    FILES_BETA,
    INTERLEAVED_THINKING,
    SMALLEST_BUDGET,
    THINKING,
    TIERS,
    family,
)
from dragoman.wire.anthropic_messages.strict import StrictRoom
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.lowering import RoleBlocks, description
from dragoman.wire.options import check_effort, refuse_together, with_extra
from dragoman.wire.schemas.fields import Schema, fits, inlined, one_object, without_limits

Body: TypeAlias = dict[str, JsonValue]


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    turns = turns_of(request, attachments, references=quirks.tool_search)
    body: Body = {"model": request.model, "stream": True}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    body["messages"] = [{"role": turn.role, "content": [*turn.blocks]} for turn in turns]
    body |= with_extra(_tools(request, quirks, turns), _options(request, quirks, turns))
    if attachments.ids:
        body = with_extra(body, {"anthropic_beta": [FILES_BETA]})
    _mark(body, request.options.get("cache_lifetime"))
    return with_extra(body, request.extra)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks, turns: list[RoleBlocks]) -> Body:
    hosted = hosted_of(request)
    body: Body = {}
    if hosted.servers:
        body = {"mcp_servers": hosted.servers, "anthropic_beta": [MCP_BETA]}
    if not request.tools:
        past = _tools_of_the_past(turns)
        if not hosted.tools:
            return past
        gone = past.get("tools")
        return body | {"tools": _each_once(gone if isinstance(gone, list) else [], hosted.tools)}
    body["tools"] = [*_declared(request, quirks), *hosted.tools]
    parallel = None if quirks.no_parallel_flag else request.options.get("parallel_tool_calls")
    choice = _choice(request, quirks)
    if choice is not None or parallel is not None:
        body["tool_choice"] = choice = choice or {"type": "auto"}
        if parallel is not None and choice["type"] != "none":
            choice["disable_parallel_tool_use"] = not parallel
    return body


def _each_once(gone: list[JsonValue], hosted: list[JsonValue]) -> list[JsonValue]:
    """Return removed tools and hosted tools together: a name may not appear twice."""
    taken = {tool.get("name") for tool in hosted if isinstance(tool, dict)}
    return [*(one for one in gone if isinstance(one, dict) and one["name"] not in taken), *hosted]


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


def _declared(request: Request, quirks: Quirks) -> Iterator[Body]:
    structured = family(request.model).structured
    room = StrictRoom() if structured and not quirks.no_strict else None
    deferred = found_in(request) if quirks.tool_search and structured else ()
    for tool in request.tools:
        schema = one_object(tool.parameters)
        strict = None if room is None else room.take(schema)
        sent = schema if strict is None else strict
        examples = _examples(tool, sent) if structured and not quirks.no_examples else []
        shown = replace(tool, examples=tuple(one for one in tool.examples if one not in examples))
        body: Body = {"name": tool.name, "description": description(shown), "input_schema": sent}
        if strict is not None:
            body["strict"] = True
        if examples:
            body["input_examples"] = examples
        if tool.name in deferred:
            # Its definition is sent where it was found, so that everything before it stays cached.
            body["defer_loading"] = True
        yield body


def _examples(tool: ToolSpec, schema: Schema) -> list[JsonValue]:
    """Return the examples for their separate field. One that does not fit its schema would invalidate the
    request."""
    plain = inlined(schema)
    return [one for one in tool.examples if fits(one, plain)]


def _tools_of_the_past(turns: list[RoleBlocks]) -> Body:
    """Return tools for a history with calls: it must come with tools, even if none can be used."""
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

SAMPLING = ("temperature", "top_p", "top_k")
OPTIONS = frozenset(
    {
        *(*SAMPLING, "max_tokens", "stop", "response_schema"),
        *("reasoning_effort", "reasoning_budget", "tool_choice", "parallel_tool_calls"),
        *("hosted_tools", "service_tier", "cache_lifetime", "safety_identifier", "metadata"),
    }
)


def check(options: Mapping[str, JsonValue], model: str) -> None:
    """Raise BadRequest for options that Claude refuses. Newer models take few options, and fewer together."""
    known, asks = family(model), check_effort(options, model=model)
    budget, limit = options.get("reasoning_budget"), options.get("max_tokens")
    if asks and known.thinking == "no":
        raise BadRequest(sentence("option.not_taken", name=asks, model=model))
    if budget and known.thinking == "adaptive":
        raise BadRequest(
            sentence("option.instead", name="reasoning_budget", model=model, instead="reasoning_effort")
        )
    if asks and known.thinking == "budget":
        least = budget if isinstance(budget, int) and budget else SMALLEST_BUDGET
        if least < SMALLEST_BUDGET:
            raise BadRequest(
                sentence(
                    "option.least", name="reasoning_budget", model=model, least=SMALLEST_BUDGET, given=budget
                )
            )
        if least > (limit if isinstance(limit, int) else known.max_tokens) - SMALLEST_BUDGET:
            raise BadRequest(sentence("option.reasoning_room", name=asks, least=least + SMALLEST_BUDGET))
    if asks and options.get("tool_choice") not in ("auto", "none"):
        refuse_together(model, options, asks, "tool_choice")
    for name in SAMPLING:
        if options.get(name) is not None and not known.sampling:
            raise BadRequest(sentence("option.not_taken", name=name, model=model))
        if asks:
            refuse_together(model, options, asks, name)
    if options.get("tool_choice") == "none":
        refuse_together(model, options, "tool_choice", "parallel_tool_calls")
    check_temperature(options, model)
    refuse_together(model, options, "temperature", "top_p")
    stop = options.get("stop")
    words = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    if any(not str(word).strip() for word in words):
        raise BadRequest(sentence("option.blank_stop", model=model))
    metadata = options.get("metadata")
    if isinstance(metadata, dict) and "user_id" in metadata:
        refuse_together(model, options, "metadata", "safety_identifier")


def check_temperature(options: Mapping[str, JsonValue], model: str) -> None:
    temperature = options.get("temperature")
    if isinstance(temperature, int | float) and temperature > 1:
        raise BadRequest(
            sentence(
                "option.takes", name="temperature", model=model, taken="0 to 1", given=f"{temperature:g}"
            )
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
        if model.interleaves and request.tools:
            body["anthropic_beta"] = [INTERLEAVED_THINKING]
    body |= {name: options[name] for name in SAMPLING if options.get(name) is not None}
    if (stop := options.get("stop")) is not None:
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if (tier := options.get("service_tier")) is not None:
        body["service_tier"] = TIERS.get(str(tier), tier)
    if metadata := _metadata(options):
        body["metadata"] = metadata
    output: Body = {}
    effort = options.get("reasoning_effort")
    if isinstance(effort, str) and effort != "none" and model.thinking == "adaptive":
        output["effort"] = EFFORTS.get(effort, effort)
    if isinstance(schema := options.get("response_schema"), dict):
        output["format"] = {"type": "json_schema", "schema": without_limits(schema)}
    if output:
        body["output_config"] = output
    return body


def _metadata(options: Body) -> Body:
    given, who = options.get("metadata"), options.get("safety_identifier")
    metadata: Body = {**given} if isinstance(given, dict) else {}
    return metadata if who is None else {"user_id": who, **metadata}


def _thinking(request: Request, quirks: Quirks, turns: list[RoleBlocks], limit: int) -> Body | None:
    """Return how the model must reason. None if it must not or cannot."""
    effort, budget = request.options.get("reasoning_effort"), request.options.get("reasoning_budget")
    how = family(request.model).thinking
    choice = _choice(request, quirks) if request.tools else None
    forced = choice is not None and choice["type"] in ("any", "tool")
    if (effort in (None, "none") and not budget) or how == "no" or forced:
        return None
    if how == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    tokens = budget if isinstance(budget, int) else BUDGETS.get(str(effort), BUDGETS["medium"])
    tokens = min(tokens, limit - SMALLEST_BUDGET)  # The answer needs room, too.
    if tokens < SMALLEST_BUDGET or _goes_on_without_thoughts(turns):
        return None
    return {"type": "enabled", "budget_tokens": tokens}


def _goes_on_without_thoughts(turns: list[RoleBlocks]) -> bool:
    """Return whether results follow calls that were made without reasoning, or by another model.

    A model with a reasoning budget must find its own reasoning before the calls it continues from.
    """
    if len(turns) < 2 or not any(block["type"] == "tool_result" for block in turns[-1].blocks):
        return False
    return turns[-2].blocks[0]["type"] not in THINKING


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────


def _mark(body: Body, lifetime: JsonValue) -> None:
    """Mark for caching what stays the same from step to step: tools, system prompt, the last two user turns
    (R2)."""
    mark: Body = {"type": "ephemeral"} if lifetime is None else {"type": "ephemeral", "ttl": lifetime}
    messages = body["messages"]
    assert isinstance(messages, list)
    users = [turn["content"] for turn in messages if isinstance(turn, dict) and turn["role"] == "user"]
    tools = body.get("tools")
    loaded = [one for one in tools if not _is_deferred(one)] if isinstance(tools, list) else None
    for blocks in (loaded, body.get("system"), *users[-2:]):
        if isinstance(blocks, list) and blocks and isinstance(last := blocks[-1], dict):
            last["cache_control"] = mark


def _is_deferred(tool: JsonValue) -> bool:
    return isinstance(tool, dict) and "defer_loading" in tool
