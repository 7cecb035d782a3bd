"""A call in, a judgement out: it may run, a person is to be asked, or it is answered without being run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from dragoman.errors import ToolFailed
from dragoman.messages.parts import Arguments, CallState, ToolCall
from dragoman.messages.questions import Action, Kind, Question, Rule
from dragoman.tools.execute import Leave
from dragoman.tools.permissions import decide
from dragoman.tools.repair import incomplete_arguments, repair_arguments, unknown_tool
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.turn.plugin import PlannedCall
from dragoman.turn.steps.ask import question_about
from dragoman.turn.steps.prepare import PreparedTurn


@dataclass(slots=True, frozen=True)
class MayRun:
    call: ToolCall
    tool: Tool
    leave: Leave


@dataclass(slots=True, frozen=True)
class MustAsk:
    call: ToolCall
    question: Question


@dataclass(slots=True, frozen=True)
class Answered:
    """It does not run; this is its result."""

    call: ToolCall
    state: CallState
    text: str
    closing: bool = False


Judgement: TypeAlias = MayRun | MustAsk | Answered


async def judge(prepared: PreparedTurn, offer: Offer, call: ToolCall) -> Judgement:
    """Mend the call, let the plugins see it, and ask the rules about it: in this order, so that what a
    person is asked about is exactly what would run."""
    if prepared.log.turn.closing:
        return Answered(call, CallState.SKIPPED, "There are no more tool calls in this turn.")
    found = _meant(offer, call)
    if isinstance(found, Answered):
        return found
    name, tool = found
    fitted = fit(offer, call)
    if not isinstance(fitted, Answered):
        call = fitted[0]
    planned = PlannedCall(call.id, name, tool, call.arguments)
    for plugin in prepared.hooks.before_tool:
        await plugin.before_tool(planned, prepared.view)
        if planned.skipped is not None:
            return Answered(call, CallState.SKIPPED, planned.skipped, closing=True)
        if planned.refused is not None:
            return Answered(call, CallState.REJECTED, planned.refused)
    if planned.arguments != call.arguments:  # a plugin may have made them fit
        fitted = fit(offer, changed(call, planned.arguments))
    if isinstance(fitted, Answered):
        return fitted
    return await _by_rules(prepared, *fitted, planned.question)


def fit(offer: Offer, call: ToolCall) -> tuple[ToolCall, Tool] | Answered:
    """The tool that is meant, and the call in that tool's own spelling."""
    found = _meant(offer, call)
    if isinstance(found, Answered):
        return found
    name, tool = found
    try:
        arguments, _ = repair_arguments(call.arguments, tool.parameters)
    except ToolFailed as error:
        return Answered(call, CallState.FAILED, str(error))
    if (name, arguments) != (call.tool, call.arguments):
        call = replace(call, tool=name, arguments=arguments)
    return call, tool


def _meant(offer: Offer, call: ToolCall) -> tuple[str, Tool] | Answered:
    found = offer.find(call.tool)
    if found is None:
        return Answered(call, CallState.FAILED, unknown_tool(call.tool, offer.tools))
    if call.raw is not None:
        return Answered(call, CallState.FAILED, incomplete_arguments(call.raw))
    return found


def changed(call: ToolCall, arguments: Arguments) -> ToolCall:
    """The call with other arguments; what the model had asked for is kept beside them."""
    return replace(call, arguments=arguments, original=call.original or call.arguments)


async def _by_rules(
    prepared: PreparedTurn, call: ToolCall, tool: Tool, asked: tuple[Kind, str] | None
) -> Judgement:
    action = await _action(prepared, tool, call)
    if action == "deny":
        text = f"A rule forbids {tool.permission} here: the call did not run."
        return Answered(call, CallState.REJECTED, text)
    if await _changed_its_mind(prepared, tool):
        return MustAsk(call, question_about(prepared.log, call, tool, "approve", text=_redefined(tool)))
    if asked is not None and not await _may_repeat(prepared, call, asked[0]):
        return MustAsk(call, question_about(prepared.log, call, tool, asked[0], text=asked[1]))
    if prepared.mode == "manual":
        return MustAsk(call, question_about(prepared.log, call, tool, "run"))
    if action == "ask" or prepared.mode == "ask":
        return MustAsk(call, question_about(prepared.log, call, tool, "approve"))
    return MayRun(call, tool, Leave(call.hash, "rule"))


async def _action(prepared: PreparedTurn, tool: Tool, call: ToolCall) -> Action:
    """The rules first; what a person granted counts only where the rules would ask."""
    patterns, rules = tool.patterns(call.arguments), prepared.rules
    action = decide(tool.permission, patterns, rules).action
    if action == "ask":
        action = decide(tool.permission, patterns, [*rules, *await _granted(prepared)]).action
    return action


async def _changed_its_mind(prepared: PreparedTurn, tool: Tool) -> bool:
    """Whether a foreign tool says of itself something else than when this person last let it run."""
    if tool.fingerprint is None:
        return False
    pinned = await prepared.log.store.pin(prepared.log.conversation.owner, tool.permission)
    return pinned not in (None, tool.fingerprint)


def _redefined(tool: Tool) -> str:
    """Whoever allowed a tool allowed what it said it was. It says something else now."""
    return (
        f"{tool.name} describes itself in other words than when it was last allowed. Now it says: "
        f"{tool.description.strip()!r}. May it run with these arguments?"
    )


async def _may_repeat(prepared: PreparedTurn, call: ToolCall, kind: Kind) -> bool:
    """The loop guard asks no more about a tool of which a person said that it may repeat itself."""
    return kind == "loop" and decide("loop", (call.tool,), await _granted(prepared)).action == "allow"


async def _granted(prepared: PreparedTurn) -> list[Rule]:
    grants = await prepared.log.store.grants(prepared.log.conversation.id)
    return [grant.rule for grant in grants if grant.workspace in (None, prepared.services.folder)]
