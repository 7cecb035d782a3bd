"""The body of a request to `streamGenerateContent`. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.request import Request, ToolChoice, ToolSpec
from dragoman.sentences import sentence
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.gemini.history import contents
from dragoman.wire.gemini.hosted import asks_for_own_tools, hosted_of
from dragoman.wire.gemini.json_schema import json_subset
from dragoman.wire.gemini.schema import subset
from dragoman.wire.gemini.shapes import BUDGETS, IN_CACHE, LEAST_OF_PRO, LEVELS, MOST, TIERS, family
from dragoman.wire.lowering import description
from dragoman.wire.options import check_effort, with_extra
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
    body = with_extra(body | _tools(request, quirks) | _options(request, quirks), request.extra)
    if "cachedContent" in body:  # it holds these already, and they may not be named again
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
        config["includeServerSideToolInvocations"] = True  # they take both kinds together only with this
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
    {
        *(*RENAMED, "stop", "response_schema", "reasoning_effort", "reasoning_budget", "tool_choice"),
        *("hosted_tools", "service_tier", "logprobs"),
    }
)


def check(options: Mapping[str, JsonValue], model: str) -> None:
    """BadRequest for reasoning that this model does not do, or always does."""
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
    large = "pro" in request.model  # these always think
    if how == "level":
        level = LEVELS.get(str(effort), MOST)
        return shown | {"thinkingLevel": "low" if large and level == "minimal" else level}
    tokens = BUDGETS.get(str(effort), BUDGETS[MOST])
    return shown | {"thinkingBudget": max(tokens, LEAST_OF_PRO) if large else tokens}
