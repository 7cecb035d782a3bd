"""Loads what decides about the calls of a turn: rules, bounds, grants, pins, and the rules of its givers.

`tools/authorize.py` decides by it. What another process may have changed a moment ago is read for each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from dragoman.background import in_thread
from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.message import Arguments
from dragoman.messages.questions import Grant, Mode, Rule
from dragoman.tools.authorize import Authority, Reason
from dragoman.tools.cage.enter import cage_in
from dragoman.tools.cage.policy import Cage, settle_beyond
from dragoman.tools.tool import Tool
from dragoman.turn.acting_agent import agents_of
from dragoman.turn.agent import NOBODY_IN_PARTICULAR, Agent
from dragoman.turn.facts import TurnOptions, options_in
from dragoman.turn.services import Services
from dragoman.workspace.workspaces import Workspace


@dataclass(slots=True)
class Givers:
    """Who a turn is no freer than: agents that handed over to its own or gave it as a task, and the nodes
    that accepted it and the turns above it, by the rules they had then."""

    agents: list[Agent] = field(default_factory=list)
    nodes: list[list[Rule]] = field(default_factory=list)

    @classmethod
    def of(cls, options: TurnOptions, earlier: Sequence[Agent]) -> Givers:
        """Of a turn in which these agents answered before the one that does now."""
        node = options.accepted
        return cls([*earlier], [[*node.rules, *node.agent]] if node is not None else [])

    def add(self, other: Givers) -> None:
        self.agents += other.agents
        self.nodes += other.nodes


async def load_grants(
    services: Services, conversation: str, folder: str | None, sender: str | None = None
) -> list[Rule]:
    """What applies, in this folder, to what a user sends: the user's own grants and denials, and what the
    owner denies. Everything is denied to a user who was removed. Read from the store for each decision:
    another process may have denied something a moment ago (P13)."""
    grants = await services.store.grants(conversation, user=sender)
    now = services.clock() if grants else 0.0
    return [
        replace(grant.rule, origin=_origin(grant))
        for grant in grants
        if (grant.workspace in (None, folder) or grant.rule.action == "deny")
        and (grant.expires is None or grant.expires > now)
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
    sender: str,
    workspace: Workspace | None,
    tool: Tool,
    givers: Givers,
    grants: Sequence[Rule] | None = None,
    wishes: Sequence[Reason] = (),
    format: str = "",
    arguments: Arguments | None = None,
) -> Authority:
    """Of the user who sent the turn. `grants` where they were loaded a moment ago; `arguments` for a call as
    a whole: they may ask something of its cage."""
    folder = workspace.path if workspace is not None and grants is None else None
    pinned = None
    if tool.fingerprint is not None:
        pinned = await services.store.pin(sender, tool.permission)
    cage = await _load_cage(services, workspace, look=tool.caged)
    beyond = tool.beyond(arguments) if tool.beyond is not None and arguments is not None else ()
    impossible = ""
    if beyond and cage is not None:
        beyond, impossible = await in_thread(partial(settle_beyond, cage, beyond))
    return replace(
        authority_by_rules(services, agent, workspace=workspace, tool=tool, givers=givers),
        cage=cage,
        beyond=beyond,
        impossible=impossible,
        grants=await load_grants(services, conversation.id, folder, sender) if grants is None else grants,
        mode=mode,
        pinned=pinned,
        wishes=wishes,
        format=format,
    )


async def _load_cage(services: Services, workspace: Workspace | None, *, look: bool) -> Cage | None:
    """What programs run in here, as things stand."""
    if services.cage.use == "off" or workspace is None:
        return None
    bounds = bounds_in(services, workspace)
    return await in_thread(partial(cage_in, workspace.folder, services.cage, bounds, look=look))


def authority_by_rules(
    services: Services, agent: Agent, *, workspace: Workspace | None, tool: Tool, givers: Givers
) -> Authority:
    """What rules alone say. An agent is held to what it was when the turn began and to what it is now: its
    texts stay, and what it is denied meanwhile is denied (P13)."""
    brought = _brought(tool)
    agents = [agent, *givers.agents]
    now = [services.agents_now.get(one.name, one) for one in agents]
    sets = [[*services.rules, *one.rules] for one in (*agents, *now)]
    own, *outer = [[*brought, *rules] for rules in (*sets, *givers.nodes)]
    denials = services.later_denials([one.name for one in agents])
    return Authority(
        rules=own,
        bounds=[*bounds_in(services, workspace), *denials],
        outer=[rules for place, rules in enumerate(outer) if rules != own and rules not in outer[:place]],
    )


def bounds_in(services: Services, workspace: Workspace | None) -> list[Rule]:
    """What nobody gets around: anywhere, and in this folder."""
    if workspace is None:
        return [*services.bounds]
    return [*services.bounds, *workspace.find_bounds(), *workspace.bounds]


def _brought(tool: Tool) -> list[Rule]:
    """Before all other rules, and so the weakest: who sent a tool along runs it, or does not."""
    return [Rule(tool.permission, "*", "allow", "it came with the message")] if tool.brought else []


async def load_givers(services: Services, conversation: Conversation) -> Givers:
    """Of the turns whose calls opened this conversation, the nearest first."""
    found = Givers()
    while conversation.parent is not None and conversation.call is not None:
        found.add(await _givers_by_call(services, conversation.call))
        conversation = await services.store.conversation(conversation.parent)
    return found


async def _givers_by_call(services: Services, call: str) -> Givers:
    """Nobody in particular where that is not known: what an import brought has messages and no turns."""
    try:
        row = await services.store.turn_of_call(call)
    except NotFound:
        return Givers([NOBODY_IN_PARTICULAR])
    agents = await agents_of(services, row.id, before=call)
    return Givers.of(options_in(await services.store.facts(row.id)), [*reversed(agents)])
