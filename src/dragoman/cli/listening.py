"""Open the addresses of servers, and implement `dragoman link`, which asks a running server."""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path

import aiohttp

from dragoman.cli.flags.chat import LinkFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.config.build import store_of
from dragoman.config.settings import Settings, data_folder
from dragoman.errors import BadRequest, ConfigError
from dragoman.redaction import RedactingFormatter
from dragoman.server.links import RunningServer, running_servers

HOST, PORT = "127.0.0.1", 8721
_BACKLOG = 1024  # maximum number of connections that wait in the system to be accepted
_PATIENCE = aiohttp.ClientTimeout(total=10)


def log_warnings() -> None:
    log = logging.StreamHandler()
    log.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[log])


def files_of(settings: Settings) -> Path:
    """Return the folder in which local servers of the store announce themselves."""
    return store_of(settings).folder(data_folder())


def listen_on(host: str, port: int | None, usual: int) -> socket.socket:
    """Listen on the given port. Without one, use the usual port if it is free, otherwise any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for attempt in (port,) if port is not None else (usual, 0):
        # asyncio sends without delay only if the protocol is given.
        listener = socket.socket(family, proto=socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, attempt))
            # Listen before the link is printed, so that even a fast client can connect.
            listener.listen(_BACKLOG)
            return listener
        except OSError as error:
            listener.close()
            failure = error
    raise ConfigError(f"Cannot listen on {host}, port {port}: {failure.strerror}.") from failure


async def print_link(flags: LinkFlags) -> None:
    """Print a sign-in link. Only the user who runs the server can do this, because its file is private."""
    servers, port = running_servers(files_of(settings_for(flags))), flags.port
    wanted = [one for one in servers if port is None or one.url.endswith(f":{port}")]
    server, path = await _ask(wanted, port)
    print(server.key if flags.key else f"{server.url}{path}")
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
            continue  # The server was killed, but its file still exists.
    where = "" if port is None else f" at port {port}"
    raise BadRequest(f"No server is running on this store{where}. Start one with `dragoman serve`.")
