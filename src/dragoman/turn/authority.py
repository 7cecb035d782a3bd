"""Loads what bears on the calls of a turn: rules, bounds, grants, pins, and the rules of outer turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.questions import Grant, Mode, Rule
from dragoman.tools.authorize import Authority, Reason
from dragoman.tools.tool import Tool
from dragoman.turn.agent import NOBODY_IN_PARTICULAR, Agent
from dragoman.turn.handoff import agents_of, rules_of
from dragoman.turn.services import Services
from dragoman.workspace.workspaces import Workspace


async def load_grants(services: Services, conversation: str, folder: str | None) -> list[Rule]:
    """What people gave by their answers and has not run out, in this folder."""
    grants = await services.grants.of(conversation)
    now = services.clock() if grants else 0.0
    return [
        replace(grant.rule, origin=_origin(grant))
        for grant in grants
        if grant.workspace in (None, folder) and (grant.expires is None or grant.expires > now)
    ]


def _origin(grant: Grant) -> str:
    """For whoever asks why a call ran: which grant, and when it was given."""
    return f"{grant.id} of {datetime.fromtimestamp(grant.created).isoformat(' ', 'seconds')}"


async def load_authority(
    services: Services,
    conversation: Conversation,
    agent: Agent,
    mode: Mode,
    *,
    workspace: Workspace | None,
    tool: Tool,
    outer: Sequence[Sequence[Rule]],
    grants: Sequence[Rule] | None = None,
    wishes: Sequence[Reason] = (),
    format: str = "",
) -> Authority:
    """`grants` where they were loaded a moment ago."""
    folder = workspace.path if workspace is not None and grants is None else None
    pinned = None
    if tool.fingerprint is not None:
        pinned = await services.store.pin(conversation.owner, tool.permission)
    return Authority(
        rules=[*_brought(tool), *services.rules, *agent.rules],
        bounds=bounds_in(services, workspace),
        outer=outer,
        grants=await load_grants(services, conversation.id, folder) if grants is None else grants,
        mode=mode,
        pinned=pinned,
        wishes=wishes,
        format=format,
    )


def bounds_in(services: Services, workspace: Workspace | None) -> list[Rule]:
    """What nobody gets around: anywhere, and in this folder."""
    if workspace is None:
        return [*services.bounds]
    return [*services.bounds, *workspace.find_bounds(), *workspace.bounds]


def _brought(tool: Tool) -> list[Rule]:
    """Before all other rules, and so the weakest: who sent a tool along runs it, or does not."""
    return [Rule(tool.permission, "*", "allow", "it came with the message")] if tool.brought else []


async def outer_rules(services: Services, conversation: Conversation) -> list[list[Rule]]:
    """The rules of the turns whose calls opened this conversation, the nearest first."""
    found: list[list[Rule]] = []
    while conversation.parent is not None and conversation.call is not None:
        agents = await _agents_that_called(services, conversation.call)
        conversation = await services.store.conversation(conversation.parent)
        found += rules_of(services, reversed(agents))
    return found


async def _agents_that_called(services: Services, call: str) -> list[Agent]:
    """Nobody in particular where that is not known: what an import brought has messages and no turns."""
    try:
        row = await services.store.turn_of_call(call)
    except NotFound:
        return [NOBODY_IN_PARTICULAR]
    return await agents_of(services, row.id, before=call)
