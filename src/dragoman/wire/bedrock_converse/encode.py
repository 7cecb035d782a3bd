"""Build the body of a request to `converse-stream`. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.media import modality
from dragoman.messages.message import CallState, File, Part, ProviderItem, Reasoning, Role, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.sentences import sentence
from dragoman.wire.anthropic_messages.encode import check_temperature
from dragoman.wire.anthropic_messages.shapes import family as claude_family
from dragoman.wire.anthropic_messages.strict import StrictRoom
from dragoman.wire.bedrock_converse.media import FileBlocks
from dragoman.wire.bedrock_converse.model_fields import check_model_fields, with_model_fields
from dragoman.wire.bedrock_converse.shapes import NAME, TIERS, Block, family
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.lowering import (
    CallIds,
    RoleBlocks,
    asked_arguments,
    description,
    lower,
    may_replay,
    result_files,
    result_text,
    safe_name,
)
from dragoman.wire.options import with_extra
from dragoman.wire.schemas.fields import Schema, inlined, one_object, schema_name, without_limits

# Convert the messages of a request for Converse: turns of two roles, made of blocks.


OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."
ATTACHED = "(Documents are attached.)"  # Documents must come with text.
SEEN = "I have the results."  # separates results from text if both cannot be in one turn


def turns_of(request: Request, attachments: Attachments) -> list[RoleBlocks]:
    history = _History(request, attachments)
    rich = family(request.model).rich_results
    for message in lower(
        request.messages, files_apart=not rich, speaks=lambda part: is_own_part(part, request)
    ):
        history.add_message(message)
    turns = history.turns
    if not turns or turns[0].role == "assistant":
        turns.insert(0, RoleBlocks("user", [{"text": OPENING}]))
    if turns[-1].role == "assistant":
        turns.append(RoleBlocks("user", [{"text": GO_ON}]))
    for turn in turns:
        if any("document" in block for block in turn.blocks) and not any(
            "text" in one for one in turn.blocks
        ):
            turn.blocks.append({"text": ATTACHED})
    return turns


class _History:
    def __init__(self, request: Request, attachments: Attachments) -> None:
        self.turns: list[RoleBlocks] = []
        self._request = request
        self._family = family(request.model)
        self._ids = CallIds()
        self._files = FileBlocks(attachments)
        self._whole = _whole_items(request)

    def add_message(self, message: RequestMessage) -> None:
        if message.role == "user":
            self._add("user", [self._content(part) for part in message.parts])
            return
        named = [(part, self._ids.next(part)) for part in message.parts if isinstance(part, ToolCall)]
        ids = iter([id for _, id in named])
        blocks = [block for part in message.parts for block in self._assistant_part(part, ids)]
        while blocks and "reasoningContent" in blocks[-1]:
            blocks.pop()  # A reply must not end with reasoning.
        self._add("assistant", blocks)
        self._add("user", [self._result(call, id) for call, id in named])
        self._add("user", [block for call, _ in named for block in self._audio(call)])

    def _add(self, role: Role, blocks: list[Block]) -> None:
        if not blocks:
            return
        last = self.turns[-1] if self.turns else None
        if last is None or last.role != role:
            self.turns.append(RoleBlocks(role, blocks))
        elif not self._family.rich_results and _has_results(last) != ("toolResult" in blocks[0]):
            self.turns += [RoleBlocks("assistant", [{"text": SEEN}]), RoleBlocks(role, blocks)]
        else:
            last.blocks += blocks

    def _content(self, part: Part) -> Block:
        if isinstance(part, Text):
            return {"text": part.text}
        assert isinstance(part, File)
        return self._files.block(part)

    def _assistant_part(self, part: Part, ids: Iterator[str]) -> Iterator[Block]:
        match part:
            case Text():
                yield {"text": part.text}
            case ToolCall():
                yield {
                    "toolUse": {
                        "toolUseId": next(ids),
                        "name": safe_name(part),
                        "input": {**asked_arguments(part)},
                    }
                }
            case Reasoning() if may_replay(part, NAME, self._request.model):
                yield from self._thought(part)
            case ProviderItem(opaque=dict() as own) if _id_of(own) in self._whole:
                yield own
            case _:
                pass

    def _thought(self, part: Reasoning) -> Iterator[Block]:
        back = self._family.thoughts_back
        if back == "no":
            return
        if isinstance(part.opaque, dict):
            yield {"reasoningContent": part.opaque}
        elif part.signature is not None:
            yield {"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}
        elif back == "all" and part.text:
            yield {"reasoningContent": {"reasoningText": {"text": part.text}}}

    def _result(self, call: ToolCall, id: str) -> Block:
        rich = self._family.rich_results
        shown = [file for file in result_files(call) if not _is_audio(file)] if rich else []
        brought = [self._files.block(file) for file in shown]
        content: list[JsonValue] = [{"text": result_text(call)}, *brought]
        result: Block = {"toolUseId": id, "content": content}
        if rich and call.state is not CallState.COMPLETED and not brought:  # An error can contain only text.
            result["status"] = "error"
        return {"toolResult": result}

    def _audio(self, call: ToolCall) -> list[Block]:
        """Return the audio of a call as blocks after the results, because a result cannot contain audio."""
        heard = [file for file in result_files(call) if _is_audio(file)] if self._family.rich_results else []
        blocks = [self._files.block(file) for file in heard]
        return [{"text": f"[Result of {call.tool}]"}, *blocks] if blocks else []


def _is_audio(file: File) -> bool:
    return modality(file) == "audio"


def _has_results(turn: RoleBlocks) -> bool:
    return any("toolResult" in block for block in turn.blocks)


# ── Amazon's tools ────────────────────────────────────────────────────────────────────────────────


def is_own_part(part: Part, request: Request) -> bool:
    """Return whether a part came from Amazon's own tools and goes back: to the same model, if they are
    requested."""
    return (
        isinstance(part, ProviderItem)
        and may_replay(part, NAME, request.model)
        and bool(request.options.get("hosted_tools"))
    )


def _whole_items(request: Request) -> set[str]:
    """Return the IDs of Amazon's own calls that have a result, and are sent back with it."""
    held: dict[str, set[str]] = {"toolUse": set(), "toolResult": set()}
    for message in request.messages:
        for part in message.parts:
            if (
                is_own_part(part, request)
                and isinstance(part, ProviderItem)
                and isinstance(part.opaque, dict)
            ):
                for kind in held.keys() & part.opaque.keys():
                    held[kind].add(_id_of(part.opaque))
    return held["toolUse"] & held["toolResult"] - {""}


def _id_of(block: Block) -> str:
    inner = block.get("toolUse") or block.get("toolResult")
    return str(inner.get("toolUseId") or "") if isinstance(inner, dict) else ""


Body: TypeAlias = dict[str, JsonValue]

AT_THE_ROOT = ("type", "properties", "required")  # of a tool's schema: some models refuse all other keywords


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
    """Return the tool configuration. Converse has no "none": then only tools of the history are named."""
    hosted = [*_hosted(request)]
    if not request.tools or request.tool_choice == "none":
        gone = _tools_of_the_past(turns)
        return {"tools": [*gone, *hosted]} if gone or hosted else {}
    config: Body = {"tools": [*_declared(request, quirks), *hosted]}
    match request.tool_choice:
        case None | "auto":
            pass  # the default
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
    """Yield Amazon's own tools, by name. An object is sent unchanged."""
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
    """Return tools for a history with calls: it must come with tools, even if none can be used."""
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
    """Raise BadRequest for options that the protocol or the model refuses."""
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
    """Mark for caching what stays the same from step to step: tools, system prompt, the last two user turns
    (R2)."""
    caches, lifetime = family(request.model).caches, request.options.get("cache_lifetime")
    if caches == "no":
        return
    point: Body = {
        "cachePoint": {"type": "default"} if lifetime is None else {"type": "default", "ttl": lifetime}
    }
    tools, messages = body.get("toolConfig"), body["messages"]
    assert isinstance(messages, list)
    users = [turn["content"] for turn in messages if isinstance(turn, dict) and turn["role"] == "user"]
    if caches == "prompts":  # only after text
        tools, users = None, [one for one in users if _ends_in_text(one)]
    for blocks in (tools.get("tools") if isinstance(tools, dict) else None, body.get("system"), *users[-2:]):
        if isinstance(blocks, list):
            blocks.append(point)


def _ends_in_text(blocks: JsonValue) -> bool:
    last = blocks[-1] if isinstance(blocks, list) else None
    return isinstance(last, dict) and "text" in last
