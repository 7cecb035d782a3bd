"""Build the body of a request to `streamGenerateContent`. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import CallState, File, Part, ProviderItem, Reasoning, Role, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage, ToolChoice, ToolSpec
from dragoman.sentences import sentence
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files import file_parts as files
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.gemini.decode import MADE, REPLAYED
from dragoman.wire.gemini.json_schema import json_subset
from dragoman.wire.gemini.schema import subset
from dragoman.wire.gemini.shapes import (
    BUDGETS,
    IN_CACHE,
    LEAST_OF_PRO,
    LEVELS,
    MEDIA,
    MOST,
    NAME,
    NO_SIGNATURE,
    RESULT_MEDIA,
    TIERS,
    family,
)
from dragoman.wire.lowering import (
    asked_arguments,
    description,
    lower,
    may_replay,
    result_files,
    result_text,
    safe_name,
)
from dragoman.wire.options import check_effort, hosted_tools, with_extra
from dragoman.wire.schemas.fields import inlined, one_object

# Google's own tools, as the option `hosted_tools` names them: search, code, pages, files, MCP servers.


MEANT = {"web_search": "googleSearch", "code_interpreter": "codeExecution", "web_fetch": "urlContext"}
MCP = "mcp"


def hosted_of(request: Request) -> list[JsonValue]:
    """Return each as an object with one field, as a request names Google's tools."""
    return [_hosted(tool) for tool in hosted_tools(request.options) if isinstance(tool, dict)]


def asks_for_own_tools(request: Request) -> bool:
    """Return whether the request has any hosted tool: without one, earlier results of such tools are not sent
    back."""
    return bool(hosted_tools(request.options)) or "tools" in request.extra


def _hosted(tool: dict[str, JsonValue]) -> JsonValue:
    word = tool.get("type")
    if not isinstance(word, str):
        return tool  # already in Google's form
    settings = {name: value for name, value in tool.items() if name != "type"}
    if word == MCP:
        return {"mcpServers": [_server(settings)]}
    return {MEANT.get(word) or _camel(word): settings}


def _server(settings: dict[str, JsonValue]) -> JsonValue:
    """Return an MCP server, from the field names of OpenAI and Anthropic."""
    token = settings.get("authorization_token") or settings.get("authorization")
    transport: dict[str, JsonValue] = {"url": settings.get("url") or settings.get("server_url")}
    if token is not None:
        transport["headers"] = {"Authorization": f"Bearer {token}"}
    name = settings.get("name") or settings.get("server_label") or MCP
    return {"name": name, "streamableHttpTransport": transport}


def _camel(word: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), word)


# Convert the messages of a request for `streamGenerateContent`: contents of two roles, made of parts.


Body: TypeAlias = dict[str, JsonValue]

ROLES: dict[Role, str] = {"user": "user", "assistant": "model"}
OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."


def contents(request: Request, attachments: Attachments) -> list[Body]:
    turns: list[tuple[Role, list[Body]]] = []
    ids = _Ids(request.model)

    def add(role: Role, parts: list[Body]) -> None:
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        elif parts:
            turns.append((role, parts))

    for message in lower(request.messages, speaks=lambda part: _may_go_back(part, request)):
        if message.role == "user":
            add("user", [_content_part(part, attachments) for part in message.parts])
            continue
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        named = [ids.next(call) for call in calls]
        results = [_Result(call, request.model, attachments) for call in calls]
        add("assistant", [*_assistant_parts(message, request.model, iter(named), attachments)])
        add("user", [result.response(id) for result, id in zip(results, named, strict=True)])
        for result in results:
            add("user", result.parts_apart())
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"text": OPENING}]))
    if turns[-1][0] == "assistant":
        turns.append(("user", [{"text": GO_ON}]))
    return [{"role": ROLES[role], "parts": [*parts]} for role, parts in turns]


def _assistant_parts(
    message: RequestMessage, model: str, ids: Iterator[str | None], attachments: Attachments
) -> Iterator[Body]:
    """Return the parts of one reply. A signature alone, in empty reasoning, belongs to the text before it."""
    parts: list[Body] = []
    foreign = any(isinstance(part, Reasoning) and _is_foreign(part, model) for part in message.parts)
    called = False
    for part in message.parts:
        match part:
            case Text():
                parts.append({"text": part.text})
            case ToolCall():
                call = _identified({"name": _name(part), "args": {**asked_arguments(part)}}, next(ids))
                theirs = not foreign and part.signed_by in (None, model)
                signature = part.signature if theirs else None
                if signature is None and not called and family(model).signs_calls:
                    signature = NO_SIGNATURE  # The first call of a batch must have one.
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
            case File():  # the model's own; otherwise `lower` has moved it after the message
                parts.append(_signed(_content_part(part, attachments), part.signature))
            case ProviderItem(opaque=dict() as own):  # those that can be sent back, with their signature
                parts.append(own)
            case _:
                pass
    yield from parts


def _may_go_back(part: Part, request: Request) -> bool:
    """Return whether Google takes a part back: a file that the model made, or a result of Google's own tools.

    The latter is taken only if the request has these tools.
    """
    if isinstance(part, File):
        return part.made_by == request.model and media_type(part) in MEDIA
    if not isinstance(part, ProviderItem) or not may_replay(part, NAME, request.model):
        return False
    return part.kind in MADE or (part.kind in REPLAYED and asks_for_own_tools(request))


def _is_foreign(thought: Reasoning, model: str) -> bool:
    """Return whether the reply came from another wire or model, which invalidates the signatures of its
    calls."""
    return thought.wire not in (None, NAME) or thought.model != model


def _signed(part: Body, signature: str | None) -> Body:
    return part if signature is None else {**part, "thoughtSignature": signature}


def _identified(body: Body, id: str | None) -> Body:
    return body if id is None else {"id": id, **body}


class _Ids:
    """The IDs of calls, each only once: models that assign IDs match results by them."""

    def __init__(self, model: str) -> None:
        self._taken = family(model).call_ids
        self._given: set[str] = set()

    def next(self, call: ToolCall) -> str | None:
        if not self._taken or not call.provider_id:
            return None
        id = call.provider_id
        while id in self._given:
            id = f"{id}+"
        self._given.add(id)
        return id


class _Result:
    """The result of a call. Its files are inside it if the model accepts that, otherwise after it."""

    def __init__(self, call: ToolCall, model: str, attachments: Attachments) -> None:
        self._call = call
        self._parts: list[JsonValue] = []
        self._apart: list[Body] = []
        inside = family(model).files_in_results
        for file in result_files(call):
            part = _content_part(file, attachments)
            if inside and "inlineData" in part and media_type(file) in RESULT_MEDIA:
                self._parts.append(part)
            else:
                self._apart.append(part)

    def response(self, id: str | None) -> Body:
        key = "output" if self._call.state is CallState.COMPLETED else "error"
        body: Body = {"name": _name(self._call), "response": {key: result_text(self._call)}}
        if self._parts:
            body["parts"] = self._parts
        return {"functionResponse": _identified(body, id)}

    def parts_apart(self) -> list[Body]:
        return [{"text": f"[Result of {self._call.tool}]"}, *self._apart] if self._apart else []


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
    if type in MEDIA and (id := files.id_of(part, attachments)):
        return {"fileData": {"mimeType": type, "fileUri": id}}
    if type in MEDIA and (data := files.base64_of(part, attachments)):
        return {"inlineData": {"mimeType": type, "data": data}}
    if type in MEDIA and part.url:
        return {"fileData": {"mimeType": type, "fileUri": part.url}}
    return {"text": files.text_of(part, attachments)}


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    body: Body = {}  # The URL contains the model.
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    body["contents"] = [*contents(request, attachments)]
    body = with_extra(body | _tools(request, quirks) | _options(request, quirks), request.extra)
    if "cachedContent" in body:  # The cache contains these fields, and the request must not repeat them.
        body = {name: value for name, value in body.items() if name not in IN_CACHE}
    return body


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks) -> Body:
    hosted = hosted_of(request)
    if not request.tools:
        return {"tools": hosted} if hosted else {}
    whole = _reads_json_schema(request, quirks)
    declared: Body = {"functionDeclarations": [_tool(tool, whole) for tool in request.tools]}
    body: Body = {"tools": [declared, *hosted]}
    config: Body = {}
    if request.tool_choice is not None:
        config["functionCallingConfig"] = _calling(request.tool_choice, quirks)
    if asks_for_own_tools(request) and family(request.model).tools_beside_hosted and not quirks.no_tool_parts:
        # Google accepts both kinds together only with this.
        config["includeServerSideToolInvocations"] = True
    return body | {"toolConfig": config} if config else body


def _calling(choice: ToolChoice, quirks: Quirks) -> Body:
    if choice in ("auto", "none"):
        return {"mode": choice.upper()}
    if quirks.no_forced_choice:
        return {"mode": "AUTO"}
    return {"mode": "ANY"} if choice == "required" else {"mode": "ANY", "allowedFunctionNames": [choice]}


def _reads_json_schema(request: Request, quirks: Quirks) -> bool:
    return family(request.model).json_schema and not quirks.no_json_schema


def _tool(tool: ToolSpec, whole: bool) -> Body:
    body: Body = {"name": tool.name, "description": description(tool)}
    schema = one_object(inlined(tool.parameters))
    parameters = json_subset(schema) if whole else subset(schema)
    if parameters.get("properties") or parameters.get("additionalProperties"):  # otherwise it has none
        body["parametersJsonSchema" if whole else "parameters"] = parameters
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
    {
        *(*RENAMED, "stop", "response_schema", "reasoning_effort", "reasoning_budget", "tool_choice"),
        *("hosted_tools", "service_tier", "logprobs"),
    }
)


def check(options: Mapping[str, JsonValue], model: str) -> None:
    """Raise BadRequest for reasoning options that this model does not support, or cannot turn off."""
    asks, how = check_effort(options, model=model), family(model).thinking
    if asks and how == "no":
        raise BadRequest(sentence("option.not_taken", name=asks, model=model))
    if how != "no" and "pro" in model and options.get("reasoning_effort") == "none":
        raise BadRequest(
            sentence("option.least", name="reasoning_effort", model=model, least="minimal", given="none")
        )


def _options(request: Request, quirks: Quirks) -> Body:
    options = request.options
    config: Body = {
        theirs: options[ours] for ours, theirs in RENAMED.items() if options.get(ours) is not None
    }
    if (stop := options.get("stop")) is not None:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    schema, beside_tools = options.get("response_schema"), family(request.model).json_with_tools
    if schema is not None and request.tools and not beside_tools and request.output is None:
        raise BadRequest(sentence("option.schema_with_tools", model=request.model))
    if isinstance(schema, dict) and (not request.tools or beside_tools):
        config["responseMimeType"] = "application/json"
        if _reads_json_schema(request, quirks):
            config["responseJsonSchema"] = json_subset(schema)
        else:
            config["responseSchema"] = subset(schema)
    if thinking := _thinking(request):
        config["thinkingConfig"] = thinking
    wanted = options.get("logprobs")
    if wanted is not None and wanted is not False:
        config |= (
            {"responseLogprobs": True} if wanted is True else {"responseLogprobs": True, "logprobs": wanted}
        )
    body: Body = {"generationConfig": config} if config else {}
    tier = options.get("service_tier")
    return body if tier is None else body | {"serviceTier": TIERS.get(str(tier), tier)}


def _thinking(request: Request) -> Body:
    effort, budget = request.options.get("reasoning_effort"), request.options.get("reasoning_budget")
    how = family(request.model).thinking
    if (effort is None and budget is None) or how == "no":
        return {}
    shown: Body = {"includeThoughts": effort != "none" and budget != 0}
    if budget is not None:
        return shown | {"thinkingBudget": budget}
    large = "pro" in request.model  # These models always reason.
    if how == "level":
        level = LEVELS.get(str(effort), MOST)
        return shown | {"thinkingLevel": "low" if large and level == "minimal" else level}
    tokens = BUDGETS.get(str(effort), BUDGETS[MOST])
    return shown | {"thinkingBudget": max(tokens, LEAST_OF_PRO) if large else tokens}
