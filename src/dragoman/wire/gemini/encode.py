"""The body of a request to `streamGenerateContent`. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.request import Request, ToolSpec
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.gemini.history import contents
from dragoman.wire.gemini.json_schema import json_subset
from dragoman.wire.gemini.schema import subset
from dragoman.wire.gemini.shapes import BUDGETS, LEAST_OF_PRO, LEVELS, MOST, family
from dragoman.wire.lowering import description
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
    body["contents"] = [*contents(request, attachments)]
    return with_extra(body | _tools(request, quirks) | _options(request, quirks), request.extra)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _tools(request: Request, quirks: Quirks) -> Body:
    if not request.tools:
        return {}
    whole = _reads_json_schema(request, quirks)
    body: Body = {"tools": [{"functionDeclarations": [_tool(tool, whole) for tool in request.tools]}]}
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


def _reads_json_schema(request: Request, quirks: Quirks) -> bool:
    return family(request.model).json_schema and not quirks.no_json_schema


def _tool(tool: ToolSpec, whole: bool) -> Body:
    body: Body = {"name": tool.name, "description": description(tool)}
    schema = one_object(inlined(tool.parameters))
    parameters = json_subset(schema) if whole else subset(schema)
    if parameters.get("properties") or parameters.get("additionalProperties"):  # else there are none
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
    {*RENAMED, "stop", "response_schema", "reasoning_effort", "reasoning_budget", "tool_choice"}
)


def _options(request: Request, quirks: Quirks) -> Body:
    options = request.options
    config: Body = {
        theirs: options[ours] for ours, theirs in RENAMED.items() if options.get(ours) is not None
    }
    if (stop := options.get("stop")) is not None:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    schema = options.get("response_schema")
    if isinstance(schema, dict) and (not request.tools or family(request.model).json_with_tools):
        config["responseMimeType"] = "application/json"
        if _reads_json_schema(request, quirks):
            config["responseJsonSchema"] = json_subset(schema)
        else:
            config["responseSchema"] = subset(schema)
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
