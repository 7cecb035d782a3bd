"""Define routes to set up MCP servers. A server is started only after the admin has seen its exact
command."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from typing import Any

from fastapi import Request

from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.questions import Rule
from dragoman.redaction import redact_text
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.server.context import TheContext, TheOwnSettings, api_router
from dragoman.server.page import CALLBACK
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.setup_models import (
    ConfirmedServer,
    NewServer,
    Returned,
    ServerLogin,
    ServerPlan,
    ServerSetup,
    ServerSetupList,
    ServerTool,
)
from dragoman.stored_keys import keys
from dragoman.tools.mcp.secrets import forget_server, looks_secret, secret_name
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import concerns

router = api_router("setup", "/setup")

OFF, PENDING = "off", "pending"  # states of a server without a source
_OAUTH = "auth", "oauth"  # the setting of a server that requires a sign-in


@router.get("/servers")
async def servers(context: TheContext, own: TheOwnSettings) -> ServerSetupList:
    """List the MCP servers with their state, problem, end of their log, and tools."""
    sources = _sources(context.runtime)
    known = await asyncio.to_thread(own.servers)
    found = {**known, **{name: source.server for name, source in sources.items()}}
    written = await asyncio.to_thread(own.tables, "mcp")
    views = [_view(own, name, server, sources.get(name), name in written) for name, server in found.items()]
    return ServerSetupList(own.short(own.file), own.is_shared, views)


@router.post("/servers/plan")
async def plan_server(context: TheContext, own: TheOwnSettings, body: NewServer) -> ServerPlan:
    """Return exactly what adding this server would run and write. Nothing is done yet."""
    server, secrets = _planned(context.runtime, own, body)
    argv = [server.command, *server.args] if server.command is not None else []
    return ServerPlan(
        body.name,
        shutil.which(server.command, path=server.env.get("PATH")) if server.command is not None else None,
        argv,
        server.cwd,
        server.url,
        server.env,
        server.headers,
        list(secrets),
        own.short(own.file),
        await _rules(context.runtime, body.name),
        own.confirmations.issue(_value(body)),
        body.oauth,
    )


@router.post("/servers", status_code=201)
async def new_server(context: TheContext, own: TheOwnSettings, body: ConfirmedServer) -> ServerSetup:
    """Write a planned and confirmed server to the settings and start it immediately."""
    runtime = context.runtime
    if not own.confirmations.use(body.confirm, _value(body)):
        raise BadRequest(sentence("server.unconfirmed"))
    server, secrets = _planned(runtime, own, body)
    main = runtime.services.workspaces.main
    source = McpSource(body.name, server, workspace=main.folder if main is not None else None)
    await asyncio.to_thread(_write, own, body, secrets)
    try:
        runtime.services.toolbox.add(source)
    except ConfigError:
        await asyncio.to_thread(_take_out, own, body.name)
        raise
    await source.ready()
    return _view(own, body.name, server, source, written=True)


@router.post("/servers/{name}/restart")
async def restart_server(context: TheContext, own: TheOwnSettings, name: str) -> ServerSetup:
    """Restart a server immediately."""
    source = _source(context.runtime, name)
    await source.restart()
    return _view(own, name, source.server, source, name in await asyncio.to_thread(own.tables, "mcp"))


@router.post("/servers/{name}/login")
async def sign_in(request: Request, context: TheContext, own: TheOwnSettings, name: str) -> ServerLogin:
    """Start a sign-in at a server that requires one. Returns its address, and how long it waits.

    The browser returns to `/callback` of the address by which the admin reached this server.
    """
    source = _source(context.runtime, name)
    is_said = source.server.auth is not None
    can_be_said = is_said or await asyncio.to_thread(own.may_set_key, "mcp", name, *_OAUTH)
    if not _signs_in(source.server, can_be_said):
        raise ConfigError(sentence("login.settings", name=name))

    async def connect_anew() -> None:
        source.server = replace(source.server, auth="oauth")
        await source.restart()
        if not is_said:
            await asyncio.to_thread(own.set_key, "mcp", name, *_OAUTH)

    redirect = f"{request.base_url}{CALLBACK.lstrip('/')}"
    return await own.logins.begin(name, source.server, redirect, connect_anew, context.runtime.background)


@router.delete("/servers/{name}/login", status_code=204)
async def call_sign_in_off(own: TheOwnSettings, name: str) -> None:
    """Cancel a sign-in. A browser that returns later is rejected."""
    await own.logins.call_off(name)


@router.post("/logins")
async def finish_sign_in(own: TheOwnSettings, body: Returned) -> ServerLogin:
    """Complete a sign-in with the parameters that the browser returned with. The web UI passes them on."""
    return await own.logins.finish(body)


@router.delete("/servers/{name}", status_code=204)
async def drop_server(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """Stop a server, and remove it from the settings with its stored secrets."""
    runtime = context.runtime
    await own.logins.call_off(name)  # Otherwise, the sign-in would store a login for a removed server.
    await asyncio.to_thread(_take_out, own, name)
    if (source := _sources(runtime).get(name)) is not None:
        await runtime.services.toolbox.remove(source)


# ── plans ─────────────────────────────────────────────────────────────────────────────────────────


def _planned(runtime: Runtime, own: OwnSettings, body: NewServer) -> tuple[McpServer, dict[str, str]]:
    """Return the server with references instead of secrets, and the secrets."""
    secrets: dict[str, str] = {}
    server = own.check_server(body.name, _table(body, secrets))
    alike = [name for name in _sources(runtime) if name.lower() == body.name.lower()]
    if alike:
        raise ConfigError(sentence("server.alike", other=alike[0]))
    return server, secrets


def _table(body: NewServer, secrets: dict[str, str]) -> dict[str, Any]:
    """Return the settings of the server. Its secrets are added to `secrets` under names of this server."""
    given: dict[str, Any] = {
        "command": body.command,
        "args": body.args,
        "cwd": body.cwd,
        "env": _referring(body.name, body.env, secrets),
        "url": body.url,
        "transport": "sse" if body.sse else None,
        "auth": "oauth" if body.oauth else None,
        "headers": _referring(body.name, body.headers, secrets),
    }
    return {key: value for key, value in given.items() if value}


def _referring(server: str, texts: dict[str, str], secrets: dict[str, str]) -> dict[str, str]:
    referring = {}
    for name, value in texts.items():
        if looks_secret(name, value) or redact_text(value) != value:
            variable = secret_name(server, name)
            if secrets.setdefault(variable, value) != value:
                raise ConfigError(sentence("server.same_secret", variable=variable))
            referring[name] = f"${{{variable}}}"
        else:
            referring[name] = value
    return referring


def _value(body: NewServer) -> dict[str, Any]:
    return body.model_dump(exclude={"confirm"})


def _write(own: OwnSettings, body: NewServer, secrets: dict[str, str]) -> None:
    own.add("mcp", body.name, _table(body, {}))
    try:
        for name, value in secrets.items():
            keys().store(name, value)
    except (OSError, ConfigError) as error:
        own.remove("mcp", body.name)
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(sentence("server.not_stored", error=error.strerror)) from None


def _take_out(own: OwnSettings, name: str) -> None:
    table = own.tables("mcp").get(name, {})
    own.remove("mcp", name)
    forget_server(name, table, [other.url for other in own.servers().values()])


async def _rules(runtime: Runtime, name: str) -> list[Rule]:
    """Return the existing rules that let a server of this name run calls without approval."""
    granted = [replace(one.rule, origin="granted") for one in await runtime.grants()]
    all_rules = [*runtime.services.rules, *granted]
    return [
        rule
        for rule in all_rules
        if rule.action == "allow"
        and (rule.permission.startswith(f"mcp.{name}.") or concerns(rule, f"mcp.{name}.any"))
    ]


# ── current state ─────────────────────────────────────────────────────────────────────────────────


def _source(runtime: Runtime, name: str) -> McpSource:
    source = _sources(runtime).get(name)
    if source is None:
        raise NotFound("server", name, sentence("hint.after_start"))
    return source


def _signs_in(server: McpServer, written: bool) -> bool:
    """Return whether a user can sign in: the settings say so, or can be changed to say so."""
    return server.url is not None and (server.auth is not None or written)


def _sources(runtime: Runtime) -> dict[str, McpSource]:
    return {one.name: one for one in runtime.services.toolbox.sources if isinstance(one, McpSource)}


def _view(
    own: OwnSettings, name: str, server: McpServer, source: McpSource | None, written: bool
) -> ServerSetup:
    absent = PENDING if server.enabled else OFF
    ours = source.for_resources if source is not None else frozenset()
    tools = source.group().tools if source is not None else ()
    return ServerSetup(
        name,
        server.kind,
        server.where,
        own.origin(f"mcp.{name}"),
        written,
        server.enabled,
        source.state if source is not None else absent,
        (redact_text(source.error) or None) if source is not None else None,
        source.log if source is not None else [],
        [ServerTool(tool.name, tool.description, tool.name in ours) for tool in tools],
        list(source.left_out) if source is not None else [],
        source is not None and _signs_in(server, written and source.state == "login"),
        own.logins.view(name),
    )
