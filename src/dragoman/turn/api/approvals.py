"""Handles what users do with calls: answer approval requests, complete calls, run them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue, ValidationError

from dragoman.background import in_thread
from dragoman.errors import AlreadyAnswered, BadRequest, ConfigError, DragomanError
from dragoman.messages.boundary import check_fields, check_json
from dragoman.messages.ids import new_id
from dragoman.messages.message import Arguments
from dragoman.messages.questions import VERDICTS, Answer, Grant, Question, Rule
from dragoman.sentences import sentence
from dragoman.store.codecs import ANSWER
from dragoman.tools.approval import choose_hunks
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.permissions import decide
from dragoman.tools.repair import fitting_arguments
from dragoman.tools.schema import problems
from dragoman.tools.tool import Tool
from dragoman.tools.workspace import previewing
from dragoman.turn.acting_agent import NAME as HAND_OFF
from dragoman.turn.acting_agent import handoff_tool
from dragoman.turn.agent import Agent
from dragoman.turn.facts import options_in
from dragoman.turn.send import client_tools_of
from dragoman.turn.services import Services
from dragoman.turn.steps.family import sender_of

# Calls that wait for a user: each call's tool, and the same call with only part of its changes.


async def waiting_tool(services: Services, asked: Question) -> Tool | None:
    """Return the tool as the turn's sender has it, since another user's tool of this name may differ.

    None if the tool is unknown here.
    """
    services = await services.seen_by(await sender_of(services.store, await services.store.turn(asked.turn)))
    if asked.tool == HAND_OFF:
        return handoff_tool(services, Agent(handoffs=tuple(services.agents)))
    brought = client_tools_of(options_in(await services.store.facts(asked.turn)))
    if asked.tool in brought:
        return brought[asked.tool]
    found = services.toolbox.offer().find(asked.tool)
    return found[1] if found else None


async def arguments_for_hunks(
    services: Services, question: str, chosen: Mapping[int, str | None]
) -> Arguments:
    """Return arguments with which the call makes only the chosen changes of those that the request shows.

    They serve an answer that allows the call with other arguments.
    """
    asked = await services.store.question(question)
    if not asked.open:
        raise AlreadyAnswered(question, asked.answer.verdict if asked.answer else "withdrawn")
    tool = await waiting_tool(services, asked) if asked.kind in ("approve", "run") else None
    if tool is None:
        raise BadRequest(sentence("question.no_changes", question=question))
    workspace = services.workspace_of(options_in(await services.store.facts(asked.turn)))
    folder = workspace.folder if workspace is not None else None
    with previewing(asked.conversation):
        return await in_thread(lambda: choose_hunks(tool, asked.arguments, folder, asked.diff, chosen))


# Whether an answer fits its request, and the rule that the answer leaves behind.


_HOUR = 3600.0


async def check_answer(services: Services, asked: Question, answer: Answer) -> None:
    """Raise BadRequest if this answer does not fit the request."""
    if not isinstance(answer, Answer):
        raise BadRequest(sentence("answer.kind", answer=answer))
    # The verdict may be unhashable, so compare it with a list.
    if answer.verdict not in list(VERDICTS[asked.kind]):
        words = ", ".join(sorted(VERDICTS[asked.kind]))
        raise BadRequest(sentence("answer.verdict", verdict=answer.verdict, question=asked.id, words=words))
    check_json([answer.arguments, answer.value, answer.reason], "the answer")
    check_fields(ANSWER, answer, "the answer")
    if answer.arguments is not None and answer.verdict != "allow":
        raise BadRequest(sentence("answer.edits", verdict=answer.verdict))
    if answer.hash is not None and answer.hash != asked.hash:
        raise BadRequest(sentence("question.other_arguments", question=asked.id))
    offered = {(rule.permission, rule.pattern) for rule in (*asked.rules, *asked.wider)}
    tool = await waiting_tool(services, asked) if answer.arguments is not None else None
    if answer.arguments is not None and tool is not None:
        fitted = fitting_arguments(answer.arguments, tool)
        edited = (*tool.always(fitted), *tool.always_wider(fitted))
        offered |= {(rule.permission, rule.pattern) for rule in edited}
    if any((rule.permission, rule.pattern) not in offered for rule in answer.rules):
        raise BadRequest(sentence("answer.rule", question=asked.id, offers=_offers(asked)))
    if asked.choices and answer.verdict == "reply" and answer.value not in asked.choices:
        _check_own_words(asked, answer)
    if asked.kind == "review" and not isinstance(answer.value, str | None):
        raise BadRequest(sentence("answer.release"))
    if asked.kind == "tool" and asked.schema and answer.verdict == "reply":
        _check_form(asked, answer.value)


def grant_of(
    answer: Answer, rule: Rule, conversation: str | None, user: str | None, folder: str | None
) -> Grant:
    """Return the grant of a rule, for as long as the answer specifies.

    None for the conversation, user or folder matches every one. A text format belongs to a model, in every
    folder.
    """
    until = answer.at + _HOUR if answer.scope == "hour" else None
    folder = None if rule.permission == "format" else folder
    return Grant(new_id("grant"), rule, conversation, answer.at, user, folder, until)


def _check_own_words(asked: Question, answer: Answer) -> None:
    if not asked.free:
        raise BadRequest(sentence("answer.choices", choices=", ".join(asked.choices)))
    if not isinstance(answer.value, str) or not answer.value.strip():
        raise BadRequest(sentence("answer.choices_or_text", choices=", ".join(asked.choices)))


def _check_form(asked: Question, value: JsonValue) -> None:
    """Check the reply to a form, using defaults for required fields that it omits.

    Defaults of optional fields need not fit: `null` often means no value.
    """
    properties, required = asked.schema.get("properties"), asked.schema.get("required")
    fields = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    if not isinstance(value, dict):
        raise BadRequest(sentence("answer.object", question=asked.id, fields=", ".join(fields)))
    defaults = {
        name: field["default"]
        for name, field in fields.items()
        if name in needed and isinstance(field, dict) and "default" in field
    }
    try:
        JsonParameters("reply", asked.schema).validate({**defaults, **value})
    except ConfigError:
        pass  # The schema itself is invalid. The tool that asked reports the problem.
    except ValidationError as error:
        raise BadRequest(sentence("answer.reply", problems=problems(error))) from error


def _offers(asked: Question) -> str:
    return "; ".join(map(str, (*asked.rules, *asked.wider))) or "none"


# Preview of a rule: the calls it would cover in a user's latest conversations, and waiting calls.


_CONVERSATIONS = 20
_CALLS = 1000
_SHOWN = 20
_WORK = 200_000_000  # Characters of the rules times characters of the patterns: half a second at worst.


@dataclass(slots=True, frozen=True)
class PastCall:
    conversation: str
    call: str
    tool: str
    patterns: tuple[str, ...]  # touched paths, commands or URLs


@dataclass(slots=True, frozen=True)
class CoveredCalls:
    """How many calls were examined and how many are covered.

    `calls` are the newest covered calls, without duplicates of the same tool and patterns. `waiting` are
    calls in any conversation that ask for approval now and would not with the rule.
    """

    looked_at: int
    covered: int
    calls: tuple[PastCall, ...]
    waiting: tuple[PastCall, ...] = ()


async def calls_covered_by(
    services: Services, rules: Sequence[Rule], *, user: str | None, question: str | None = None
) -> CoveredCalls:
    """Count calls matched by the rules, whatever their action: denying rules cover calls too.

    `question` is the request whose answer would create the rules.
    """
    allowing = [replace(rule, action="allow") for rule in rules]
    found, asked = await _past_calls(services, user), await _waiting_calls(services, user, question)
    looked_at, covered = await in_thread(lambda: _covered(found, allowing))
    _, waiting = await in_thread(lambda: _covered(asked, allowing))
    unlike = {(one.tool, one.patterns): one for one in reversed(covered)}
    return CoveredCalls(looked_at, len(covered), tuple([*unlike.values()][::-1][:_SHOWN]), tuple(waiting))


def _covered(found: Sequence[tuple[str, PastCall]], rules: Sequence[Rule]) -> tuple[int, list[PastCall]]:
    """Return how many calls were examined, and the covered ones.

    Calls that would take too long are left out: any user can ask, with deliberately slow rules.
    """
    letters = sum(len(rule.pattern) if "*" in rule.pattern else 1 for rule in rules)
    looked_at, covered, left = 0, [], _WORK
    for permission, one in found:
        work = letters * sum(map(len, one.patterns))
        if work > left:
            continue
        left -= work
        looked_at += 1
        if decide(permission, one.patterns, rules).action == "allow":
            covered.append(one)
    return looked_at, covered


async def _past_calls(services: Services, user: str | None) -> list[tuple[str, PastCall]]:
    """Return the newest calls first, each with its tool's permission. Calls of unknown tools are left out."""
    offer = services.toolbox.offer()
    found: list[tuple[str, PastCall]] = []
    for conversation in await services.store.conversations(user=user, limit=_CONVERSATIONS):
        messages, _ = await services.store.messages(conversation.id)
        for call in reversed([call for message in messages for call in message.all_calls]):
            meant = offer.find(call.tool)
            if len(found) == _CALLS:
                return found
            if meant is None:
                continue
            try:
                patterns = tuple(meant[1].patterns(call.arguments))
            except (DragomanError, LookupError, TypeError, ValueError):  # The arguments never fitted.
                continue
            found.append((meant[1].permission, PastCall(conversation.id, call.id, call.tool, patterns)))
    return found


async def _waiting_calls(
    services: Services, user: str | None, answered: str | None
) -> list[tuple[str, PastCall]]:
    """Return waiting calls that a rule settles, each with the permission of its tool.

    They are limited to the folder of the request to answer, or else the runtime's main folder: an allowing
    rule applies there.
    """
    folder, main = None, services.workspaces.main
    if answered:
        folder = await _folder_of(services, await services.store.question(answered))
    elif main is not None:
        folder = main.path
    anywhere = not answered and main is None
    found: list[tuple[str, PastCall]] = []
    for one in await services.store.questions(user=user):
        if one.because != "rule" or one.kind != "approve" or one.id == answered:
            continue
        tool = await waiting_tool(services, one)
        if tool is not None and (anywhere or await _folder_of(services, one) == folder):
            found.append((tool.permission, PastCall(one.conversation, one.call, one.tool, one.patterns)))
    return found


async def _folder_of(services: Services, asked: Question) -> str | None:
    try:
        workspace = services.workspace_of(options_in(await services.store.facts(asked.turn)))
    except (DragomanError, ValueError):  # The workspace is gone, or the turn is unreadable.
        return None
    return workspace.path if workspace is not None else None
