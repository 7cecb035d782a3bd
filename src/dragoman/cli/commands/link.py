"""`dragoman link`: asks the server that runs on this store for a link, or for the key of programs."""

from __future__ import annotations

import asyncio
import sys

import aiohttp

from dragoman.cli.listening import files_of
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest
from dragoman.server.links import RunningServer, running_servers

_PATIENCE = aiohttp.ClientTimeout(total=10)


def print_link(settings: Settings, *, key: bool, port: int | None = None) -> None:
    """Only the user who runs the server can do this: nobody else can read the file that says how."""
    servers = running_servers(files_of(settings))
    wanted = [one for one in servers if port is None or one.url.endswith(f":{port}")]
    server, path = asyncio.run(_ask(wanted, port))
    print(server.key if key else f"{server.url}{path}")
    if others := [one.url for one in wanted if one != server]:
        print(f"This is the newest server; --port asks another: {', '.join(others)}", file=sys.stderr)


async def _ask(servers: list[RunningServer], port: int | None) -> tuple[RunningServer, str]:
    for server in servers:
        headers = {"authorization": f"Bearer {server.key}"}
        try:
            async with (
                aiohttp.ClientSession(server.url, headers=headers, timeout=_PATIENCE) as session,
                session.post("/api/links", json={}) as response,
            ):
                if response.status == 201:
                    return server, str((await response.json())["path"])
        except (aiohttp.ClientError, TimeoutError, OSError):
            continue  # it was killed, and its file is still there
    where = "" if port is None else f" at port {port}"
    raise BadRequest(f"no server runs on this store{where}: dragoman serve starts one")
