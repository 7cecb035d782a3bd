"""Loads the rules, bounds, grants and pins that decide about the calls of a turn, and the rules of its
givers.

`tools/authorize.py` decides with them. Data that another process may just have changed is read for each
call.
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
    """Agents and processes that limit a turn's freedom.

    They are the agents that handed over to its agent or gave it a task, and the processes that accepted it
    and the turns above it, with their rules at that time.
    """

    agents: list[Agent] = field(default_factory=list)
    nodes: list[list[Rule]] = field(default_factory=list)

    @classmethod
    def of(cls, options: TurnOptions, earlier: Sequence[Agent]) -> Givers:
        """Return the givers of a turn in which these agents answered before the current one."""
        node = options.accepted
        return cls([*earlier], [[*node.rules, *node.agent]] if node is not None else [])

    def add(self, other: Givers) -> None:
        self.agents += other.agents
        self.nodes += other.nodes


async def load_grants(
    services: Services, conversation: str, folder: str | None, sender: str | None = None
) -> list[Rule]:
    """Return the grants that apply to a user's turns in this folder.

    They are the user's grants and denials, and the owner's denials. A removed user is denied everything. Each
    decision reads the store, because another process may just have added a denial (P13).
    """
    grants = await services.store.grants(conversation, user=sender)
    now = services.clock() if grants else 0.0
    return [
        replace(grant.rule, origin=_origin(grant))
        for grant in grants
        if (grant.workspace in (None, folder) or grant.rule.action == "deny")
        and (grant.expires is None or grant.expires > now)
    ]


def _origin(grant: Grant) -> str:
    """Name the grant and its time, for users who inspect why a call ran."""
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
    """Load the authority of the user who sent the turn.

    Pass `grants` if they were just loaded. Pass `arguments` for a whole call, which may need something from
    its sandbox.
    """
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
    """Return the current sandbox of programs."""
    if services.cage.use == "off" or workspace is None:
        return None
    bounds = bounds_in(services, workspace)
    return await in_thread(partial(cage_in, workspace.folder, services.cage, bounds, look=look))


def authority_by_rules(
    services: Services, agent: Agent, *, workspace: Workspace | None, tool: Tool, givers: Givers
) -> Authority:
    """Return the authority from rules alone.

    An agent is bound by its definition at the turn's start and by the current one: its texts stay, and later
    denials apply (P13).
    """
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
    """Return the bounds that nothing overrides, everywhere and in this folder."""
    if workspace is None:
        return [*services.bounds]
    return [*services.bounds, *workspace.find_bounds(), *workspace.bounds]


def _brought(tool: Tool) -> list[Rule]:
    """Return the weakest rule, placed before all others: a tool that came with the message may be called."""
    return [Rule(tool.permission, "*", "allow", "it came with the message")] if tool.brought else []


async def load_givers(services: Services, conversation: Conversation) -> Givers:
    """Return the givers from the turns whose calls opened this conversation, the nearest first."""
    found = Givers()
    while conversation.parent is not None and conversation.call is not None:
        found.add(await _givers_by_call(services, conversation.call))
        conversation = await services.store.conversation(conversation.parent)
    return found


async def _givers_by_call(services: Services, call: str) -> Givers:
    """Return the givers of a call. A plain agent if its turn is unknown, as after an import."""
    try:
        row = await services.store.turn_of_call(call)
    except NotFound:
        return Givers([NOBODY_IN_PARTICULAR])
    agents = await agents_of(services, row.id, before=call)
    return Givers.of(options_in(await services.store.facts(row.id)), [*reversed(agents)])
