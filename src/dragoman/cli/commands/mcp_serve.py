"""Run `dragoman mcp serve`: offer tools and conversations to other programs until they close or Ctrl-C."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

from mcp.server.lowlevel import Server

from dragoman.cli.flags.mcp import McpServeFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.listening import PORT, files_of, listen_on, log_warnings
from dragoman.cli.model_choice import choose_model
from dragoman.config.build import build_runtime
from dragoman.config.project_prompt import templates
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError
from dragoman.runtime import Runtime
from dragoman.server.auth import Auth, load_secret
from dragoman.server.listener import HttpServer
from dragoman.server.mcp.caller import WithCaller
from dragoman.server.mcp.server import http_app, mcp_server, serve_stdio
from dragoman.server.middleware import LOOPBACK
from dragoman.server.proxies import Proxies
from dragoman.wire.http_client.network import is_loopback
from dragoman.wire.wire import Model

_log = logging.getLogger("dragoman.mcp")
HTTP_PORT = PORT + 1


async def serve_mcp(flags: McpServeFlags) -> None:
    settings = settings_for(flags, {"model": flags.model}, asks=flags.http)
    log_warnings()
    async with AsyncExitStack() as stack:
        await _serve_with(settings, flags, await _models(settings, stack))


async def _models(settings: Settings, stack: AsyncExitStack) -> Callable[[str | None], Model]:
    """Return the models that agents use. Without any, tools can still be called."""
    try:
        chosen = await choose_model(settings)
    except ConfigError as error:
        if settings.values.get("model"):
            raise
        missing = error

        def none(name: str | None) -> Model:
            raise missing

        return none
    return await stack.enter_async_context(chosen.models)


async def _serve_with(
    settings: Settings, flags: McpServeFlags, models: Callable[[str | None], Model]
) -> None:
    built = build_runtime(
        settings,
        model=WithCaller(models),
        without={"browser"},
        allow=flags.allow or (),
        deny=flags.deny or (),
        adopts=False,  # This command does not resume turns that other programs left.
    )
    for warning in built.warnings:
        _log.warning("left out: %s", warning)
    async with built.runtime as runtime:
        server = mcp_server(runtime, templates(settings))
        if flags.http:
            await _serve_http(settings, flags, runtime, server)
        else:
            await serve_stdio(server)


async def _serve_http(settings: Settings, flags: McpServeFlags, runtime: Runtime, server: Server) -> None:
    auth = Auth(runtime.store, load_secret(files_of(settings) / "secret"))
    table = settings.values.get("server", {})
    hosts, proxies = {*LOOPBACK, *table.get("hosts", [])}, Proxies(table.get("proxies", []))
    if not is_loopback(flags.host):
        hosts.add(flags.host)
    app = http_app(server, auth, hosts, proxies)
    with listen_on(flags.host, flags.port, HTTP_PORT) as listener:
        host, port = listener.getsockname()[:2]
        where = f"[{host}]" if ":" in host else host
        print(f"Dragoman's tools are at http://{where}:{port}/mcp", file=sys.stderr)
        print(f"  header  Authorization: Bearer {auth.key}", file=sys.stderr)
        print("  a key of `dragoman people` will do, too. Ctrl-C stops it.", file=sys.stderr, flush=True)
        await HttpServer(app, proxies=proxies).serve(sockets=[listener])
