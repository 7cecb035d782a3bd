"""The body of a request to `streamGenerateContent`. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import Role
from dragoman.messages.parts import CallState, File, Part, Reasoning, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.wire import files
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.gemini.schema import subset
from dragoman.wire.gemini.shapes import (
    BUDGETS,
    LEAST_OF_PRO,
    LEVELS,
    MEDIA,
    MOST,
    NAME,
    NO_SIGNATURE,
    family,
)
from dragoman.wire.lowering import (
    asked_arguments,
    description,
    lower,
    may_replay,
    result_text,
    safe_name,
)
from dragoman.wire.options import with_extra
from dragoman.wire.quirks import NO_QUIRKS, Quirks
from dragoman.wire.schemas import inlined, one_object

Body: TypeAlias = dict[str, JsonValue]


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    body: Body = {}  # the model stands in the address
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    body["contents"] = [*_contents(request, attachments)]
    return with_extra(body | _tools(request, quirks) | _options(request), request.extra)


# ── messages ──────────────────────────────────────────────────────────────────────────────────────

ROLES: dict[Role, str] = {"user": "user", "assistant": "model"}
OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."


def _contents(request: Request, attachments: Attachments) -> list[Body]:
    turns: list[tuple[Role, list[Body]]] = []

    def add(role: Role, parts: list[Body]) -> None:
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((role, parts))

    for message in lower(request.messages, files_apart=True):
        if message.role == "user":
            add("user", [_content_part(part, attachments) for part in message.parts])
        else:
            add("assistant", [*_assistant_parts(message, request.model)])
            add("user", [_response(part) for part in message.parts if isinstance(part, ToolCall)])
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"text": OPENING}]))
    if turns[-1][0] == "assistant":
        turns.append(("user", [{"text": GO_ON}]))
    return [{"role": ROLES[role], "parts": [*parts]} for role, parts in turns]


def _assistant_parts(message: RequestMessage, model: str) -> Iterator[Body]:
    """The parts of one reply. A signature alone, in an empty thought, belongs to the text before it."""
    parts: list[Body] = []
    foreign = any(isinstance(part, Reasoning) and _is_foreign(part, model) for part in message.parts)
    called = False
    for part in message.parts:
        match part:
            case Text():
                parts.append({"text": part.text})
            case ToolCall():
                call: Body = {"name": _name(part), "args": {**asked_arguments(part)}}
                signature = None if foreign else part.signature
                if signature is None and not called and family(model).signs_calls:
                    signature = NO_SIGNATURE  # the first of a batch must bear one
                parts.append(_signed({"functionCall": call}, signature))
                called = True
            case Reasoning() if may_replay(part, NAME, model):
                if part.text:
                    parts.append(_signed({"text": part.text, "thought": True}, part.signature))
                elif part.signature is not None:
                    before = parts[-1] if parts else {}
                    if before.keys() != {"text"}:
                        before = {"text": ""}
                        parts.append(before)
                    before["thoughtSignature"] = part.signature
            case _:
                pass
    yield from parts


def _is_foreign(thought: Reasoning, model: str) -> bool:
    """Whether its reply came by another wire or model, so that the signatures of its calls are void."""
    return thought.wire not in (None, NAME) or thought.model != model


def _signed(part: Body, signature: str | None) -> Body:
    return part if signature is None else {**part, "thoughtSignature": signature}


def _response(call: ToolCall) -> Body:
    key = "output" if call.state is CallState.COMPLETED else "error"
    return {"functionResponse": {"name": _name(call), "response": {key: result_text(call)}}}


def _name(call: ToolCall) -> str:
    name = safe_name(call)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"[:64]


def carries(file: File) -> bool:
    return media_type(file) in MEDIA or is_text(file)


def _content_part(part: Part, attachments: Attachments) -> Body:
    if isinstance(part, Text):
        return {"text": part.text}
    assert isinstance(part, File)
    type = media_type(part)
    if type in MEDIA and (data := files.base64_of(part, attachments)):
        return {"inlineData": {"mimeType": type, "data": data}}
    if type in MEDIA and part.url:
        return {"fileData": {"mimeType": type, "fileUri": part.url}}
    return {"text": files.text_of(part, attachments)}


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks) -> Body:
    if not request.tools:
        return {}
    body: Body = {"tools": [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]}
    if (choice := request.tool_choice) is not None:
        calling: Body
        if choice in ("auto", "none"):
            calling = {"mode": choice.upper()}
        elif quirks.no_forced_choice:
            calling = {"mode": "AUTO"}
        elif choice == "required":
            calling = {"mode": "ANY"}
        else:
            calling = {"mode": "ANY", "allowedFunctionNames": [choice]}
        body["toolConfig"] = {"functionCallingConfig": calling}
    return body


def _tool(tool: ToolSpec) -> Body:
    body: Body = {"name": tool.name, "description": description(tool)}
    parameters = subset(one_object(inlined(tool.parameters)))
    if "properties" in parameters:  # an object without any is refused
        body["parameters"] = parameters
    return body


# ── options ───────────────────────────────────────────────────────────────────────────────────────

RENAMED = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "max_tokens": "maxOutputTokens",
}
OPTIONS = frozenset(
    {*RENAMED, "stop", "response_schema", "reasoning_effort", "reasoning_budget", "tool_choice"}
)


def _options(request: Request) -> Body:
    options = request.options
    config: Body = {
        theirs: options[ours] for ours, theirs in RENAMED.items() if options.get(ours) is not None
    }
    if (stop := options.get("stop")) is not None:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    schema = options.get("response_schema")
    if isinstance(schema, dict) and (not request.tools or family(request.model).json_with_tools):
        config |= {"responseMimeType": "application/json", "responseSchema": subset(schema)}
    if thinking := _thinking(request):
        config["thinkingConfig"] = thinking
    return {"generationConfig": config} if config else {}


def _thinking(request: Request) -> Body:
    effort, budget = request.options.get("reasoning_effort"), request.options.get("reasoning_budget")
    how = family(request.model).thinking
    if (effort is None and budget is None) or how == "no":
        return {}
    shown: Body = {"includeThoughts": effort != "none" and budget != 0}
    if budget is not None:
        return shown | {"thinkingBudget": budget}
    large = "pro" in request.model  # these always think
    if how == "level":
        level = LEVELS.get(str(effort), MOST)
        return shown | {"thinkingLevel": "low" if large and level == "minimal" else level}
    tokens = BUDGETS.get(str(effort), BUDGETS[MOST])
    return shown | {"thinkingBudget": max(tokens, LEAST_OF_PRO) if large else tokens}
