"""Define routes for agents, which are written to the admin's settings, and for folder trust."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from dragoman.config.build import agent_of, check_model
from dragoman.config.settings import inspect_folder
from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import FolderContents, hash_of, inspect_project
from dragoman.config.trust.summary import summarise
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.server.context import TheContext, TheOwnSettings, api_router
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.setup_models import (
    AgentBody,
    AgentSetup,
    AgentSetupList,
    FolderTrust,
    FolderTrustList,
    TrustDecision,
)
from dragoman.turn.acting_agent import turns_of_agent
from dragoman.turn.agent import Agent

router = api_router("setup", "/setup")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@router.get("/agents")
async def agents(context: TheContext, own: TheOwnSettings) -> AgentSetupList:
    """List all agents with all fields and their file."""
    found = [_view(own, agent) for agent in context.runtime.services.agents.values()]
    return AgentSetupList(own.short(own.file), own.is_shared, found)


@router.put("/agents/{name}")
async def set_agent(context: TheContext, own: TheOwnSettings, name: str, body: AgentBody) -> AgentSetup:
    """Write an agent to the settings. It applies from the next turn on."""
    runtime = context.runtime
    if not _NAME.fullmatch(name):
        raise ConfigError(sentence("agent.name"))
    async with own.changing_agents:
        others = {**runtime.services.agents}
        if name in others:
            _check_own(own, name)
        elif name in own.tables("agents"):
            raise ConfigError(sentence("agent.written_since", name=name, file=own.short(own.file)))
        # Settings that the form does not show, such as limits, are kept.
        table = _table(body, own.tables("agents").get(name, {}))
        agent = _agent(own, name, table)
        for meant in agent.tools or ():
            runtime.services.toolbox.check_name(meant)
        check_model(own.settings, await asyncio.to_thread(own.catalog), f"agents.{name}", agent.model)
        agents = [*{**others, name: agent}.values()]
        await _use(runtime, agents, partial(own.put, "agents", name, table))
        return _view(own, agent)


@router.delete("/agents/{name}", status_code=204)
async def drop_agent(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """Remove an agent from the file that the web UI writes. It must not be used by a running turn."""
    runtime = context.runtime
    async with own.changing_agents:
        if name not in runtime.services.agents:
            raise NotFound("agent", name)
        _check_own(own, name)
        if working := await turns_of_agent(runtime.services, name):
            raise ConfigError(sentence("agent.working", name=name, count=len(working)))
        left = [agent for agent in runtime.services.agents.values() if agent.name != name]
        await _use(runtime, left, partial(own.remove, "agents", name))


def _check_own(own: OwnSettings, name: str) -> None:
    if not own.has("agents", name):
        raise ConfigError(
            sentence("agent.elsewhere", name=name, place=own.origin(f"agents.{name}") or "a program")
        )


async def _use(runtime: Runtime, agents: Sequence[Agent], write: Callable[[], None]) -> None:
    """Apply the agents, then write them. Applying comes first and can fail: with invalid agents in its
    settings, no server would start."""
    before = [*runtime.services.agents.values()]
    runtime.use_agents(agents)
    try:
        await asyncio.to_thread(write)
    except Exception:
        runtime.use_agents(before)
        raise


def _table(body: AgentBody, before: dict[str, Any]) -> dict[str, Any]:
    written = {key: value for key, value in body.model_dump().items() if value}
    if body.tools is not None:
        written["tools"] = body.tools  # No tools differs from all tools.
    shown = AgentBody.model_fields.keys() - ({"teams"} if body.teams is None else ())
    return {**written, **{key: value for key, value in before.items() if key not in shown}}


def _agent(own: OwnSettings, name: str, table: dict[str, Any]) -> Agent:
    agent = agent_of(own.settings, name, table)  # type: ignore[arg-type]  # as the file will have it
    return replace(agent, rules=tuple(replace(rule, origin=str(own.file)) for rule in agent.rules))


def _view(own: OwnSettings, agent: Agent) -> AgentSetup:
    return AgentSetup(
        agent.name,
        agent.description,
        agent.prompt,
        agent.model,
        list(agent.tools) if agent.tools is not None else None,
        list(agent.rules),
        own.origin(f"agents.{agent.name}"),
        own.has("agents", agent.name),
        list(agent.teams),
    )


# ── folders ───────────────────────────────────────────────────────────────────────────────────────


@router.get("/trust")
async def trust(own: TheOwnSettings) -> FolderTrustList:
    """List the folders that have settings, tools or programs, with their trust and later changes."""
    return FolderTrustList(await asyncio.to_thread(_folders, own))


@router.put("/trust")
async def decide_trust(own: TheOwnSettings, body: TrustDecision) -> FolderTrustList:
    """Trust a folder exactly as it was shown, or revoke its trust. It applies after the next start of the
    server."""

    def decide() -> list[FolderTrust]:
        folder = Path(body.folder)
        if folder not in _known(own):
            raise NotFound("folder", body.folder)
        contents = _inspect(folder)
        if contents.unsafe is not None or _seal(contents) != body.seen:
            raise BadRequest(sentence("trust.changed", folder=body.folder))
        trust_answers().remember(contents, trusted=body.trusted)
        return _folders(own)

    return FolderTrustList(await asyncio.to_thread(decide))


def _known(own: OwnSettings) -> set[Path]:
    """Return the known folders. The folder of a settings file that was named at the start is left out,
    because naming it expresses trust."""
    sources = own.settings.sources
    named = {sources.named.parent.resolve()} if sources.named is not None else set()
    return {*(sources.folders - named), *(one.contents.folder for one in sources.left_out)}


def _inspect(folder: Path) -> FolderContents:
    try:
        return inspect_folder(folder)
    # The settings of the folder are broken. They are shown, but the files that they refer to are unknown.
    except ConfigError:
        return inspect_project(folder)


def _seal(contents: FolderContents) -> str:
    return hash_of(to_json(sorted(contents.files.items())))


def _folders(own: OwnSettings) -> list[FolderTrust]:
    """Return the folders as they are now, which can differ from when the server started."""
    left_out = {one.contents.folder for one in own.settings.sources.left_out}
    return [_folder_view(_inspect(folder), used=folder not in left_out) for folder in sorted(_known(own))]


def _folder_view(contents: FolderContents, *, used: bool) -> FolderTrust:
    answer = trust_answers().find(contents.folder)
    changes = answer.changes(contents) if answer is not None and answer.trusted else []
    view = FolderTrust(str(contents.folder), "not_trusted", summarise(contents), changes)
    view.files, view.seen = [*contents.files], _seal(contents)
    if contents.unsafe is not None:
        view.state, view.reason = "unsafe", contents.unsafe
    elif answer is not None and answer.trusted:
        view.state = "trusted" if answer.covers(contents) else "changed"
    view.restart = view.state in ("trusted", "not_trusted") and used != (view.state == "trusted")
    return view
