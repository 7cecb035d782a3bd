"""Routes to set the server up, for whoever runs it: providers and their keys, MCP servers, agents, skills."""

from __future__ import annotations

import asyncio

from fastapi import Request

from dragoman.server.api_router import api_router
from dragoman.server.context import TheContext
from dragoman.server.page import CALLBACK
from dragoman.server.setup import servers as mcp
from dragoman.server.setup import shapes
from dragoman.server.setup.access import TheOwnSettings
from dragoman.server.setup.agents import list_agents, put_agent, remove_agent
from dragoman.server.setup.bodies import (
    AgentBody,
    ConfirmedServer,
    NewKey,
    NewProvider,
    NewServer,
    Returned,
    SkillBody,
)
from dragoman.server.setup.providers import (
    add_provider,
    forget_provider_key,
    list_providers,
    remove_provider,
    store_provider_key,
    test_provider,
)
from dragoman.server.setup.skills import list_skills, put_skill, remove_skill
from dragoman.server.setup.trust import list_trust

router = api_router("setup", "/setup")

# ── providers ─────────────────────────────────────────────────────────────────────────────────────


@router.get("/providers")
async def providers(context: TheContext, own: TheOwnSettings) -> shapes.ProviderSetupList:
    """Who serves models, whether one can sign in there, and where the key comes from. Never the key."""
    return await list_providers(context.runtime, own)


@router.post("/providers", status_code=201)
async def new_provider(context: TheContext, own: TheOwnSettings, body: NewProvider) -> shapes.ProviderSetup:
    """A server of one's own, at once: it is written to the settings, and its key is stored."""
    return await add_provider(context.runtime, own, body)


@router.delete("/providers/{name}", status_code=204)
async def drop_provider(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """One that was added, with its key."""
    await remove_provider(context.runtime, own, name)


@router.put("/providers/{name}/key")
async def set_key(context: TheContext, own: TheOwnSettings, name: str, body: NewKey) -> shapes.ProviderSetup:
    """Into the keyring, or where there is none, into a file only its owner can read. It holds at once."""
    return await store_provider_key(context.runtime, own, name, body.key.get_secret_value())


@router.delete("/providers/{name}/key")
async def drop_key(context: TheContext, own: TheOwnSettings, name: str) -> shapes.ProviderSetup:
    """What was stored. A key of the environment stays where it is."""
    return await forget_provider_key(context.runtime, own, name)


@router.post("/providers/{name}/test")
async def try_provider(context: TheContext, own: TheOwnSettings, name: str) -> shapes.ProviderTest:
    """Asks the provider for its list of models, with the key that is there."""
    return await test_provider(context.runtime, name)


# ── MCP servers ───────────────────────────────────────────────────────────────────────────────────


@router.get("/servers")
async def servers(context: TheContext, own: TheOwnSettings) -> shapes.ServerSetupList:
    """Each MCP server with its state, why it is not there, the end of its log, and its tools."""
    return await mcp.list_servers(context.runtime, own)


@router.post("/servers/plan")
async def plan_server(context: TheContext, own: TheOwnSettings, body: NewServer) -> shapes.ServerPlan:
    """Exactly what adding this server would run and write. Nothing is done yet."""
    return await mcp.plan_server(context.runtime, own, body)


@router.post("/servers", status_code=201)
async def new_server(context: TheContext, own: TheOwnSettings, body: ConfirmedServer) -> shapes.ServerSetup:
    """What was planned and confirmed: it is written to the settings and started at once."""
    return await mcp.add_server(context.runtime, own, body)


@router.post("/servers/{name}/restart")
async def restart_server(context: TheContext, own: TheOwnSettings, name: str) -> shapes.ServerSetup:
    """Ends it if it runs, and starts it at once."""
    return await mcp.restart_server(context.runtime, own, name)


@router.post("/servers/{name}/login")
async def sign_in(
    request: Request, context: TheContext, own: TheOwnSettings, name: str
) -> shapes.ServerLogin:
    """Begins a sign-in at a server that wants one: where that is done, and until when it is waited for.

    The browser comes back to `/callback` of the address by which this server was asked.
    """
    return await mcp.sign_in(context.runtime, own, name, f"{request.base_url}{CALLBACK.lstrip('/')}")


@router.delete("/servers/{name}/login", status_code=204)
async def call_sign_in_off(own: TheOwnSettings, name: str) -> None:
    """Nobody waits for it any more; what the browser may still come back with is not taken."""
    await own.logins.call_off(name)


@router.post("/logins")
async def finish_sign_in(own: TheOwnSettings, body: Returned) -> shapes.ServerLogin:
    """What the browser came back with, brought by the page: the sign-in goes on to its end."""
    return await own.logins.finish(body)


@router.delete("/servers/{name}", status_code=204)
async def drop_server(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """Ends it, and takes it out of the settings, with the secrets that were stored for it."""
    await mcp.remove_server(context.runtime, own, name)


# ── agents, skills ────────────────────────────────────────────────────────────────────────────────


@router.get("/agents")
async def agents(context: TheContext, own: TheOwnSettings) -> shapes.AgentSetupList:
    """Each agent, whole, and the file it comes from."""
    return await list_agents(context.runtime, own)


@router.put("/agents/{name}")
async def set_agent(
    context: TheContext, own: TheOwnSettings, name: str, body: AgentBody
) -> shapes.AgentSetup:
    """Written to the settings; it holds from the next turn on."""
    return await put_agent(context.runtime, own, name, body)


@router.delete("/agents/{name}", status_code=204)
async def drop_agent(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """One that stands in the file that the page writes, and works in no turn."""
    await remove_agent(context.runtime, own, name)


@router.get("/skills")
async def skills(context: TheContext, own: TheOwnSettings) -> shapes.SkillSetupList:
    """Each skill, whole, and the file it comes from."""
    return await list_skills(context.runtime, own)


@router.put("/skills/{name}")
async def set_skill(
    context: TheContext, own: TheOwnSettings, name: str, body: SkillBody
) -> shapes.SkillSetup:
    """Written into the person's own folder of skills, for turns that begin after it."""
    return await put_skill(context.runtime, own, name, body)


@router.delete("/skills/{name}", status_code=204)
async def drop_skill(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """One of the person's own folder: its `SKILL.md`, and the folder if nothing else is in it."""
    await remove_skill(context.runtime, own, name)


# ── folders ───────────────────────────────────────────────────────────────────────────────────────


@router.get("/trust")
async def trust(own: TheOwnSettings) -> shapes.FolderTrustList:
    """The folders that bring settings, tools or programs: trusted or not, and what changed since."""
    return shapes.FolderTrustList(await asyncio.to_thread(list_trust, own))
