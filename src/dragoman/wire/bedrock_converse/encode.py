"""The body of a request to `converse-stream`. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.anthropic_messages.encode import check_temperature
from dragoman.wire.anthropic_messages.shapes import family as claude_family
from dragoman.wire.anthropic_messages.strict import StrictRoom
from dragoman.wire.bedrock_converse.history import turns_of
from dragoman.wire.bedrock_converse.model_fields import check_model_fields, with_model_fields
from dragoman.wire.bedrock_converse.shapes import TIERS, family
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.lowering import description
from dragoman.wire.options import with_extra
from dragoman.wire.quirks import NO_QUIRKS, Quirks
from dragoman.wire.role_blocks import RoleBlocks
from dragoman.wire.schemas import Schema, inlined, one_object, schema_name, without_limits

Body: TypeAlias = dict[str, JsonValue]

AT_THE_ROOT = ("type", "properties", "required")  # of a tool's schema: some models refuse all other words


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    turns = turns_of(request, attachments)
    body: Body = {"messages": [{"role": turn.role, "content": [*turn.blocks]} for turn in turns]}
    if request.system.strip():
        body["system"] = [{"text": request.system}]
    if tools := _tools(request, quirks, turns):
        body["toolConfig"] = tools
    body |= _options(request)
    with_model_fields(body, request, turns)
    if not body["inferenceConfig"]:
        del body["inferenceConfig"]
    _mark(body, request)
    return with_extra(body, request.extra)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks, turns: list[RoleBlocks]) -> Body:
    """There is no word for "none": then no tool is offered, though those of the past must be named."""
    hosted = [*_hosted(request)]
    if not request.tools or request.tool_choice == "none":
        gone = _tools_of_the_past(turns)
        return {"tools": [*gone, *hosted]} if gone or hosted else {}
    config: Body = {"tools": [*_declared(request, quirks), *hosted]}
    match request.tool_choice:
        case None | "auto":
            pass  # what goes without saying
        case _ if quirks.no_forced_choice:
            pass
        case "required":
            config["toolChoice"] = {"any": {}}
        case name:
            config["toolChoice"] = {"tool": {"name": name}}
    return config


def _declared(request: Request, quirks: Quirks) -> Iterator[Body]:
    whole = family(request.model).any_schema
    structured = whole and claude_family(request.model).structured and not quirks.no_strict
    room = StrictRoom() if structured else None
    for tool in request.tools:
        schema = one_object(tool.parameters)
        strict = None if room is None else room.take(schema)
        spec: Body = {
            "name": tool.name,
            "description": description(tool).strip() or tool.name,
            "inputSchema": {"json": strict if strict is not None else schema if whole else _plain(schema)},
        }
        if strict is not None:
            spec["strict"] = True
        yield {"toolSpec": spec}


def _plain(schema: Schema) -> Schema:
    found = inlined(schema)
    return {"properties": {}} | {name: found[name] for name in AT_THE_ROOT if name in found}


def _hosted(request: Request) -> Iterator[Body]:
    """Amazon's own tools, by name. An object is sent as it is."""
    wanted = request.options.get("hosted_tools")
    for tool in wanted if isinstance(wanted, list) else ():
        yield (
            {"systemTool": {"name": tool}}
            if isinstance(tool, str)
            else tool
            if isinstance(tool, dict)
            else {}
        )


def _tools_of_the_past(turns: list[RoleBlocks]) -> list[Body]:
    """A history with calls in it must come with tools, even if none is to be used any more."""
    names: dict[str, None] = {}
    for turn in turns:
        for block in turn.blocks:
            call = block.get("toolUse")
            if isinstance(call, dict) and "type" not in call:
                names[str(call["name"])] = None
    gone: Schema = {"type": "object", "properties": {}}
    return [
        {"toolSpec": {"name": name, "description": "Not available any more.", "inputSchema": {"json": gone}}}
        for name in names
    ]


# ── options ───────────────────────────────────────────────────────────────────────────────────────

OPTIONS = frozenset(
    {
        *("temperature", "top_p", "top_k", "max_tokens", "stop", "response_schema", "tool_choice"),
        *("reasoning_effort", "reasoning_budget", "hosted_tools", "service_tier", "cache_lifetime"),
        "metadata",
    }
)


def check(options: Mapping[str, JsonValue], model: str) -> None:
    """BadRequest for what the protocol or the model does not take."""
    check_temperature(options, model)
    stop = options.get("stop")
    if "" in ([stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []):
        raise BadRequest(sentence("option.blank_stop", model=model))
    if family(model).caches == "no" and options.get("cache_lifetime") is not None:
        raise BadRequest(sentence("option.not_taken", name="cache_lifetime", model=model))
    check_model_fields(options, model)


def _options(request: Request) -> Body:
    options = request.options
    config: Body = {}
    for ours, theirs in (("temperature", "temperature"), ("top_p", "topP"), ("max_tokens", "maxTokens")):
        if options.get(ours) is not None:
            config[theirs] = options[ours]
    if (stop := options.get("stop")) is not None:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    body: Body = {"inferenceConfig": config}
    if (tier := options.get("service_tier")) is not None:
        body["serviceTier"] = {"type": TIERS.get(str(tier), tier)}
    if isinstance(metadata := options.get("metadata"), dict):
        body["requestMetadata"] = {name: str(value) for name, value in metadata.items()}
    if isinstance(schema := options.get("response_schema"), dict):
        wanted: Body = {"schema": json.dumps(without_limits(schema)), "name": schema_name(schema)}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": wanted}}}
    return body


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────


def _mark(body: Body, request: Request) -> None:
    """R2: what stays the same from step to step is marked: tools, system prompt, the last two user turns."""
    caches, lifetime = family(request.model).caches, request.options.get("cache_lifetime")
    if caches == "no":
        return
    point: Body = {
        "cachePoint": {"type": "default"} if lifetime is None else {"type": "default", "ttl": lifetime}
    }
    tools, messages = body.get("toolConfig"), body["messages"]
    assert isinstance(messages, list)
    users = [turn["content"] for turn in messages if isinstance(turn, dict) and turn["role"] == "user"]
    if caches == "prompts":  # behind text alone
        tools, users = None, [one for one in users if _ends_in_text(one)]
    for blocks in (tools.get("tools") if isinstance(tools, dict) else None, body.get("system"), *users[-2:]):
        if isinstance(blocks, list):
            blocks.append(point)


def _ends_in_text(blocks: JsonValue) -> bool:
    last = blocks[-1] if isinstance(blocks, list) else None
    return isinstance(last, dict) and "text" in last
