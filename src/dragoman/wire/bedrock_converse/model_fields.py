"""Set the fields of a request that belong to the model: how it reasons, and how it samples tokens.

Converse passes these on unchanged, and has a separate field for few of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.anthropic_messages.encode import check as check_claude
from dragoman.wire.anthropic_messages.shapes import (
    BUDGETS,
    EFFORTS,
    INTERLEAVED_THINKING,
    SMALLEST_BUDGET,
)
from dragoman.wire.anthropic_messages.shapes import family as claude_family
from dragoman.wire.bedrock_converse.shapes import family
from dragoman.wire.lowering import RoleBlocks
from dragoman.wire.options import check_effort, refuse_together

Body: TypeAlias = dict[str, JsonValue]

NOVA_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium"}
NOVA_MOST = "high"  # With this effort, it accepts no limit and no temperature.


def check_model_fields(options: Mapping[str, JsonValue], model: str) -> None:
    """Raise BadRequest for model fields that this model refuses, alone or together."""
    how = family(model).thinking
    if how == "claude":
        check_claude(options, model)
        return
    asks = check_effort(options, model=model)
    if asks and how == "no":
        raise BadRequest(sentence("option.not_taken", name=asks, model=model))
    if asks == "reasoning_budget":
        raise BadRequest(
            sentence("option.instead", name="reasoning_budget", model=model, instead="reasoning_effort")
        )
    if how == "nova" and asks and options.get("reasoning_effort") not in NOVA_EFFORTS:
        for name in ("temperature", "top_p", "max_tokens"):
            refuse_together(model, options, "reasoning_effort", name)


def with_model_fields(body: Body, request: Request, turns: list[RoleBlocks]) -> None:
    """Put this model's own fields into the body, and remove what the model refuses with them."""
    how = family(request.model).thinking
    fields: Body = {}
    if how == "claude":
        fields = _claude(body, request, turns)
    elif how == "nova":
        fields = _nova(request)
    elif how == "effort" and isinstance(effort := request.options.get("reasoning_effort"), str):
        fields = {"reasoning_effort": effort}
    if how != "claude" and (top_k := request.options.get("top_k")) is not None:
        nova = "nova-" in request.model
        fields |= {"inferenceConfig": {"topK": top_k}} if nova else {"top_k": top_k}
    if fields:
        body["additionalModelRequestFields"] = fields


def _claude(body: Body, request: Request, turns: list[RoleBlocks]) -> Body:
    model, options, config = claude_family(request.model), request.options, _config(body)
    limit = config.setdefault("maxTokens", model.max_tokens)
    thinking = _thinking(body, request, turns, limit if isinstance(limit, int) else model.max_tokens)
    fields: Body = {}
    if thinking is not None:
        fields["thinking"] = thinking
        if model.interleaves and request.tools:
            fields["anthropic_beta"] = [INTERLEAVED_THINKING]
    if (top_k := options.get("top_k")) is not None:
        fields["top_k"] = top_k
    effort = options.get("reasoning_effort")
    if isinstance(effort, str) and effort != "none" and model.thinking == "adaptive":
        output = body.setdefault("outputConfig", {})
        assert isinstance(output, dict)
        output["effort"] = EFFORTS.get(effort, effort)
    return fields


def _thinking(body: Body, request: Request, turns: list[RoleBlocks], limit: int) -> Body | None:
    """Return how Claude must reason. None if it must not or cannot."""
    effort, budget = request.options.get("reasoning_effort"), request.options.get("reasoning_budget")
    how = claude_family(request.model).thinking
    if (effort in (None, "none") and not budget) or how == "no" or _is_forced(body):
        return None
    if how == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    tokens = budget if isinstance(budget, int) else BUDGETS.get(str(effort), BUDGETS["medium"])
    tokens = min(tokens, limit - SMALLEST_BUDGET)  # The answer needs room, too.
    if tokens < SMALLEST_BUDGET or _goes_on_without_thoughts(turns):
        return None
    return {"type": "enabled", "budget_tokens": tokens}


def _nova(request: Request) -> Body:
    effort, budget = request.options.get("reasoning_effort"), request.options.get("reasoning_budget")
    if effort == "none" or (effort is None and not budget):
        return {}
    level = NOVA_EFFORTS.get(str(effort or "medium"), NOVA_MOST)
    return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": level}}


def _config(body: Body) -> Body:
    config = body["inferenceConfig"]
    assert isinstance(config, dict)
    return config


def _is_forced(body: Body) -> bool:
    tools = body.get("toolConfig")
    choice = tools.get("toolChoice") if isinstance(tools, dict) else None
    return isinstance(choice, dict) and "auto" not in choice


def _goes_on_without_thoughts(turns: list[RoleBlocks]) -> bool:
    """Return whether results follow calls that were made without reasoning, or by another model."""
    if len(turns) < 2 or not any("toolResult" in block for block in turns[-1].blocks):
        return False
    return "reasoningContent" not in turns[-2].blocks[0]
