"""What every server of ours says and asks of its machine, apart from the API of `dragoman serve`.

`dragoman mcp serve` and `dragoman link` need no more than this, and importing the API takes a second.
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from dragoman.config.build import store_of
from dragoman.config.settings import Settings, data_folder
from dragoman.errors import ConfigError
from dragoman.redaction import RedactingFormatter

HOST, PORT = "127.0.0.1", 8721
_BACKLOG = 1024  # connections that wait in the system to be accepted


def log_warnings() -> None:
    log = logging.StreamHandler()
    log.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[log])


def files_of(settings: Settings) -> Path:
    """Where the servers of this machine that use the store say so."""
    return store_of(settings).folder(data_folder())


def listen_on(host: str, port: int | None, usual: int) -> socket.socket:
    """On the port that is named. Without one, on the usual one if it is free, else on any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for attempt in (port,) if port is not None else (usual, 0):
        listener = socket.socket(family, proto=socket.IPPROTO_TCP)  # named, so that asyncio sends at once
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, attempt))
            listener.listen(_BACKLOG)  # before the link is printed: who is quick need not come again
            return listener
        except OSError as error:
            listener.close()
            failure = error
    raise ConfigError(f"cannot listen on {host}, port {port}: {failure.strerror}") from failure
