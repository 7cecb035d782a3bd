"""What a rule would cover: calls of a person's last conversations, and calls that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.errors import DragomanError
from dragoman.messages.questions import Question, Rule
from dragoman.tools.permissions import decide
from dragoman.tools.thread import in_thread
from dragoman.turn.facts import options_in
from dragoman.turn.services import Services
from dragoman.turn.waiting_calls import waiting_tool

_CONVERSATIONS = 20
_CALLS = 1000
_SHOWN = 20
_WORK = 200_000_000  # letters of the rules times letters of what was touched: half a second at worst


@dataclass(slots=True, frozen=True)
class PastCall:
    conversation: str
    call: str
    tool: str
    patterns: tuple[str, ...]  # what it touched


@dataclass(slots=True, frozen=True)
class CoveredCalls:
    """Of so many calls that were looked at, so many are covered; `calls` are the newest of these, no two of
    which touched the same. `waiting` are asked about now, in any conversation, and would be no longer."""

    looked_at: int
    covered: int
    calls: tuple[PastCall, ...]
    waiting: tuple[PastCall, ...] = ()


async def calls_covered_by(
    services: Services, rules: Sequence[Rule], *, user: str | None, question: str | None = None
) -> CoveredCalls:
    """Whatever the rules say: denying rules cover, too. `question`: the one whose answer would make them."""
    allowing = [replace(rule, action="allow") for rule in rules]
    found, asked = await _past_calls(services, user), await _waiting_calls(services, user, question)
    looked_at, covered = await in_thread(lambda: _covered(found, allowing))
    _, waiting = await in_thread(lambda: _covered(asked, allowing))
    unlike = {(one.tool, one.patterns): one for one in reversed(covered)}
    return CoveredCalls(looked_at, len(covered), tuple([*unlike.values()][::-1][:_SHOWN]), tuple(waiting))


def _covered(found: Sequence[tuple[str, PastCall]], rules: Sequence[Rule]) -> tuple[int, list[PastCall]]:
    """How many were looked at, and which of them are covered. What would take too long is left out: anybody
    may ask, with rules that are made to be slow."""
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
    """The newest first, each with the permission of its tool. Tools that are not here any more have none."""
    offer = services.toolbox.offer()
    found: list[tuple[str, PastCall]] = []
    for conversation in await services.store.conversations(user=user, limit=_CONVERSATIONS):
        messages, _ = await services.store.messages(conversation.id)
        for call in reversed([call for message in messages for call in message.calls]):
            meant = offer.find(call.tool)
            if len(found) == _CALLS:
                return found
            if meant is None:
                continue
            try:
                patterns = tuple(meant[1].patterns(call.arguments))
            except (DragomanError, LookupError, TypeError, ValueError):  # arguments that never fitted
                continue
            found.append((meant[1].permission, PastCall(conversation.id, call.id, call.tool, patterns)))
    return found


async def _waiting_calls(
    services: Services, user: str | None, answered: str | None
) -> list[tuple[str, PastCall]]:
    """Those that a rule settles, each with the permission of its tool: those in the folder of the question
    that is to be answered, else in the runtime's own, since a rule that allows holds there."""
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
    except (DragomanError, ValueError):  # it is gone, or the turn cannot be read
        return None
    return workspace.path if workspace is not None else None
