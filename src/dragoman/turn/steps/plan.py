"""Plans a call: run it, ask a user, or answer it without running it.

The call is repaired first, then the plugins see it, then `authorize` decides. The order ensures that a user
is asked about exactly what would run. Edited arguments take the same steps again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias

from dragoman.background import in_thread
from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments, CallState, Message, ToolCall, canonical
from dragoman.messages.questions import Answer, Question, Rule
from dragoman.sentences import sentence, together
from dragoman.tools.approval import Foreseen, foresee
from dragoman.tools.authorize import Ask, Authority, Reason, Refuse, Run, answer_by_rule, authorize
from dragoman.tools.execute import Permit
from dragoman.tools.repair import incomplete_arguments, repair_arguments, unknown_tool
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.tools.workspace import previewing
from dragoman.turn.plugin import PlannedCall
from dragoman.turn.steps.ask import question_about, question_to_run
from dragoman.turn.steps.authority import load_authority
from dragoman.turn.steps.prepare import PreparedTurn

_log = logging.getLogger("dragoman.turn")
_PATIENCE = 2  # Number of replies answered with the same failing call. The next one closes the turn.
BY_PERSON = sentence("limit.person")  # the text of the limit
STOPPED = "A person stopped the calls of this turn: answer with what there is."
NO_CALL = "This is text, not a call."
REDEFINED = "The tool changed its definition while a person was asked about this call: it did not run."
MOVED = "What the call asks for leads elsewhere now than when a person was asked about it: it did not run."


@dataclass(slots=True, frozen=True)
class Ready:
    """The call may run."""

    call: ToolCall
    tool: Tool
    permit: Permit


@dataclass(slots=True, frozen=True)
class Asking:
    """The call may run if a user allows it."""

    call: ToolCall
    question: Question


@dataclass(slots=True, frozen=True)
class AnsweredCall:
    """The call does not run, and this is its result. With a `limit`, the model gets no more calls in this
    turn."""

    call: ToolCall
    state: CallState
    text: str
    limit: str = ""


Plan: TypeAlias = Ready | Asking | AnsweredCall


async def plan(prepared: PreparedTurn, offer: Offer, call: ToolCall, grants: Sequence[Rule]) -> Plan:
    """Plan a call as the model made it."""
    if _is_closed(prepared, call):
        return AnsweredCall(call, CallState.SKIPPED, "There are no more tool calls in this turn.")
    fitted = fit(offer, call)
    if isinstance(fitted, AnsweredCall) and call.guessed:
        return AnsweredCall(call, CallState.REJECTED, NO_CALL)
    if isinstance(fitted, AnsweredCall) and _meant(offer, call) is None:
        return _patiently(prepared, fitted)
    if not isinstance(fitted, AnsweredCall):
        call = fitted[0]
        if (refused := _refused_before(prepared, call)) is not None:
            return refused
    planned = await _seen_by_plugins(prepared, offer, call)
    if isinstance(planned, AnsweredCall):
        return planned
    if planned.arguments != call.arguments:  # A plugin may have made the arguments fit.
        fitted = fit(offer, changed(call, planned.arguments))
    fitted = fitted if isinstance(fitted, AnsweredCall) else _fit_now(prepared, *fitted)
    if isinstance(fitted, AnsweredCall):
        return _patiently(prepared, fitted)
    call, tool = fitted
    authority = await _authority(prepared, tool, call, planned.wishes, grants)
    match _authorized(tool, call, authority):
        case Refuse(text):
            return AnsweredCall(call, CallState.REJECTED, text)
        case Ask() as ask:
            return await _asking(prepared, call, tool, ask)
        case Run(because, cage):
            return Ready(call, tool, Permit(call.hash, because, cage))


async def plan_answered(
    prepared: PreparedTurn, offer: Offer, call: ToolCall, question: Question, answer: Answer
) -> Plan:
    """Plan a call that a user allowed, possibly with other arguments, under the current conditions."""
    edited = answer.arguments is not None and canonical(answer.arguments) != canonical(call.arguments)
    if edited:
        assert answer.arguments is not None
        call = changed(call, answer.arguments)
    # The external tool may have changed meanwhile.
    if question.fingerprint is not None and offer.find(call.tool):
        now = prepared.services.toolbox.offer().find(call.tool)
        if now is None or now[1].fingerprint != question.fingerprint:
            return AnsweredCall(call, CallState.FAILED, REDEFINED)
        offer = replace(offer, tools={**offer.tools, now[0]: now[1]})  # Use the tool as the user saw it.
    fitted = fit(offer, call)
    if isinstance(fitted, AnsweredCall):
        return fitted
    call, tool = fitted
    wishes: Sequence[Reason] = ()
    if edited:
        planned = await _seen_by_plugins(prepared, offer, call)
        if isinstance(planned, AnsweredCall):
            return planned
        if canonical(planned.arguments) != canonical(call.arguments):
            call = changed(call, planned.arguments)
            fitted = fit(offer, call)
            if isinstance(fitted, AnsweredCall):
                return fitted
            call, tool = fitted  # A plugin changed the user's arguments, so the user must see the result.
            ask = Ask((Reason("plugin", sentence("question.changed")),))
            return await _asking(prepared, call, tool, ask)
        wishes = planned.wishes
    authority = await _authority(prepared, tool, call, wishes, None)
    verdict = _authorized(tool, call, authority)
    if isinstance(verdict, Refuse):
        return AnsweredCall(call, CallState.REJECTED, verdict.text)
    if isinstance(verdict, Ask):
        new = tuple(reason for reason in verdict.reasons if not _covered(reason, question))
        if new:
            return await _asking(prepared, call, tool, Ask(new))
        if not edited and any(rule not in question.rules for rule in verdict.beyond):
            return AnsweredCall(call, CallState.FAILED, MOVED)
    who = (
        sentence("because.allowed", who=answer.by, scope=answer.scope)
        if answer.by
        else sentence("because.somebody", scope=answer.scope)
    )
    because = sentence("because", kind="answer", said=who, where="")
    return Ready(call, tool, Permit(call.hash, because, verdict.cage))


async def answer_meanwhile(prepared: PreparedTurn, tool: Tool, call: ToolCall) -> Answer | None:
    """Return the answer of a rule added while the request was being created.

    The user who added the rule could not settle a request that did not exist yet.
    """
    verdict = _authorized(tool, call, await _authority(prepared, tool, call, (), None))
    return answer_by_rule(verdict, Answer("allow", "always", at=prepared.log.now()))


async def plan_late(prepared: PreparedTurn, ready: Ready, *, allowed: bool) -> Plan:
    """Plan a call that was allowed and had to wait for others: it runs if its permission still applies.

    If a user `allowed` it, the user is not asked again.
    """
    call, tool = ready.call, ready.tool
    if prepared.log.turn.limit == BY_PERSON:
        return AnsweredCall(call, CallState.SKIPPED, STOPPED)
    match _authorized(tool, call, await _authority(prepared, tool, call, (), None)):
        case Refuse(text):
            return AnsweredCall(call, CallState.REJECTED, text)
        case _ if allowed:
            return ready
        case Ask() as ask:
            return await _asking(prepared, call, tool, ask)
        case Run(because, cage):
            return Ready(call, tool, Permit(call.hash, because, cage))


async def plan_repeated(prepared: PreparedTurn, offer: Offer, call: ToolCall, approved: str | None) -> Plan:
    """Plan a repeatable call that was running when its process died: it runs if its permission still applies.

    A user's approval does not cover a tool that has changed since.
    """
    fitted = fit(offer, call)
    if isinstance(fitted, AnsweredCall):
        return fitted
    call, tool = fitted
    verdict = _authorized(tool, call, await _authority(prepared, tool, call, (), None))
    if isinstance(verdict, Refuse):
        return AnsweredCall(call, CallState.INTERRUPTED, verdict.text)
    if isinstance(verdict, Ask) and (approved is None or verdict.because == "redefined"):
        place = prepared.log.turn.calls[call.id].starts
        texts = [reason.text for reason in verdict.reasons if reason.text]
        question = question_about(prepared.log, call, tool, "interrupted", place=place)
        return Asking(call, replace(question, text=together([*texts, question.text])))
    return Ready(
        call,
        tool,
        Permit(
            approved or call.hash,
            sentence("because", kind="repeated", said=sentence("because.safe"), where=""),
            verdict.cage,
        ),
    )


def fit(offer: Offer, call: ToolCall) -> tuple[ToolCall, Tool] | AnsweredCall:
    """Return the tool that is meant, and the call with that tool's spelling of names."""
    found = offer.find(call.tool)
    if found is None:
        return AnsweredCall(call, CallState.FAILED, unknown_tool(call.tool, offer.tools))
    if call.raw is not None:
        return AnsweredCall(call, CallState.FAILED, incomplete_arguments(call.raw))
    name, tool = found
    try:
        arguments, _ = repair_arguments(call.arguments, tool.parameters)
    except ToolFailed as error:
        return AnsweredCall(call, CallState.FAILED, str(error))
    if name != call.tool or arguments is not call.arguments:
        call = replace(call, tool=name, arguments=arguments)
    return call, tool


def _fit_now(prepared: PreparedTurn, call: ToolCall, tool: Tool) -> tuple[ToolCall, Tool] | AnsweredCall:
    """Do the same with the current definition of an external tool that changed since it was offered.

    That definition would run, and a user is asked about it.
    """
    now = prepared.services.toolbox.offer().find(call.tool) if tool.fingerprint is not None else None
    if now is None or now[1].fingerprint == tool.fingerprint or now[1].permission != tool.permission:
        return call, tool
    return fit(Offer({call.tool: now[1]}), call)


def changed(call: ToolCall, arguments: Arguments) -> ToolCall:
    """Return the call with other arguments. `original` keeps the model's."""
    return replace(call, arguments=arguments, original=call.asked_for)


def _is_closed(prepared: PreparedTurn, call: ToolCall) -> bool:
    """Return whether a limit was reached by earlier calls, in this or an earlier reply, or a user stopped
    all."""
    turn = prepared.log.turn
    if not turn.closing or turn.closes or turn.limit == BY_PERSON:
        return turn.closing
    before = takewhile(lambda one: one != call.id, turn.calls)
    return any(turn.calls[id].state is CallState.SKIPPED for id in before if turn.calls[id].step == turn.step)


def _meant(offer: Offer, call: ToolCall) -> tuple[str, Tool] | None:
    return offer.find(call.tool) if call.raw is None else None


async def _seen_by_plugins(
    prepared: PreparedTurn, offer: Offer, call: ToolCall
) -> PlannedCall | AnsweredCall:
    found = offer.find(call.tool)
    assert found is not None
    planned = PlannedCall(call.id, *found, call.arguments, asked_for=call.asked_for)
    await prepared.hooks.see_call(planned, prepared.view)
    if planned.skipped is not None:
        return AnsweredCall(call, CallState.SKIPPED, planned.skipped, limit=planned.skipped)
    if planned.refused is not None:
        return AnsweredCall(call, CallState.REJECTED, planned.refused)
    return planned


async def _asking(prepared: PreparedTurn, call: ToolCall, tool: Tool, ask: Ask) -> Asking:
    """Build the request with a preview of what the call would write."""
    foreseen, fails = await _foreseen(prepared, tool, call) if tool.preview is not None else (Foreseen(), "")
    question = question_to_run(prepared.log, call, tool, ask, prepared.mode, foreseen=foreseen, fails=fails)
    return Asking(call, question)


async def _foreseen(prepared: PreparedTurn, tool: Tool, call: ToolCall) -> tuple[Foreseen, str]:
    """Return the diff that the call would make, or the reason why it would fail.

    The user is asked anyway: a file's contents must not reach a model that no user allowed to read it.
    """
    workspace = prepared.view.workspace
    try:
        with previewing(prepared.log.conversation.id):
            return await in_thread(lambda: foresee(tool, call.arguments, workspace)), ""
    except ToolFailed as error:
        return Foreseen(), str(error)
    except Exception as error:  # The preview is the tool's function and may raise anything.
        _log.debug("%s cannot tell what it would write: %s", tool.name, error)
        return Foreseen(), ""


def _authorized(tool: Tool, call: ToolCall, authority: Authority) -> Run | Ask | Refuse:
    try:
        patterns = tool.patterns(call.arguments)
    except Exception as error:  # A tool's function failed: a call with unknown patterns cannot be allowed.
        return Refuse(f"{tool.name} did not run: what it would touch cannot be told ({error}).")
    return authorize(tool, patterns, authority)


async def _authority(
    prepared: PreparedTurn,
    tool: Tool,
    call: ToolCall,
    wishes: Sequence[Reason],
    grants: Sequence[Rule] | None,
) -> Authority:
    return await load_authority(
        prepared.services,
        prepared.log.conversation,
        prepared.agent,
        prepared.mode,
        sender=prepared.log.sender,
        workspace=prepared.workspace,
        tool=tool,
        givers=prepared.givers,
        grants=grants,
        wishes=wishes,
        format=f"{call.format} {_model_of(prepared, call)}" if call.guessed else "",
        arguments=call.arguments,
    )


def _model_of(prepared: PreparedTurn, call: ToolCall) -> str:
    """Return the model that made the call. In a chain, it may be any of them."""
    made = (
        message.model for message in prepared.log.messages if call.id in (one.id for one in message.calls)
    )
    return next(made, None) or prepared.model.name


def _covered(reason: Reason, question: Question) -> bool:
    """Return whether the user's answer covers this reason. A plugin's new question was not part of the
    request."""
    return reason.cause != "plugin" or reason.text in question.text


# ── calls that come again and again ───────────────────────────────────────────────────────────────


def _refused_before(prepared: PreparedTurn, call: ToolCall) -> AnsweredCall | None:
    """P10: a refused call that comes again unchanged is refused automatically, then closes the turn.

    A user message since then resets this, because the user may have changed their mind.
    """
    if all(known.state is not CallState.REJECTED for known in prepared.log.turn.calls.values()):
        return None
    said = (place for place, message in enumerate(prepared.log.messages) if _is_said(message))
    since = max(said, default=0)  # The message that a rerun answers belongs to another turn.
    replies = _earlier(prepared, call, lambda other: other.state is CallState.REJECTED, since)
    if replies >= _PATIENCE:
        text = f"{call.tool} was refused {replies} times with these arguments: there are no more calls now."
        return AnsweredCall(call, CallState.SKIPPED, text, limit=sentence("limit.refused"))
    if replies:
        text = f"{call.tool} was refused with exactly these arguments in this turn: it is refused again."
        return AnsweredCall(call, CallState.REJECTED, text)
    return None


def _patiently(prepared: PreparedTurn, answered: AnsweredCall) -> AnsweredCall:
    """C10: a call that cannot run and comes again unchanged is answered once or twice, then closes
    the turn."""
    call = answered.call
    replies = _earlier(prepared, call, lambda other: other.state is CallState.FAILED and not other.started)
    if replies < _PATIENCE:
        return answered
    text = f"{answered.text}\nThe same call came {replies + 1} times: there are no more calls now."
    return replace(answered, state=CallState.SKIPPED, text=text, limit=sentence("limit.hopeless"))


def _is_said(message: Message) -> bool:
    """Return whether a user sent the message."""
    return message.role == "user" and message.author is None


def _earlier(
    prepared: PreparedTurn, call: ToolCall, counts: Callable[[ToolCall], bool], since: int = 0
) -> int:
    """Count earlier replies of this turn that held the same call with an outcome that counts."""
    log = prepared.log
    earlier = (message for message in log.messages[since:] if message.id != log.turn.reply)
    replies = sum(any(counts(one) and _same(one, call) for one in message.all_calls) for message in earlier)
    if call.made_in is not None:  # A program that retries is treated like a model that does.
        own = log.inner_calls(call.made_in.call)
        replies += sum(counts(one) and _same(one, call) for one in own if one.id != call.id)
    return replies


def _same(one: ToolCall, other: ToolCall) -> bool:
    """Compare what the model requested, whatever a plugin or a user changed."""
    return (one.tool, one.raw) == (other.tool, other.raw) and one.asked_for == other.asked_for
