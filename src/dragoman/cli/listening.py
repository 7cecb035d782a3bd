"""What every server of ours says and asks of its machine, apart from the API of `dragoman serve`.

`dragoman mcp serve` and `dragoman link` need no more than this, and importing the API takes a second.
"""

from __future__ import annotations

import logging
from pathlib import Path

from dragoman.config.build import store_of
from dragoman.config.settings import Settings, data_folder
from dragoman.redaction import RedactingFormatter

HOST, PORT = "127.0.0.1", 8721


def log_warnings() -> None:
    log = logging.StreamHandler()
    log.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[log])


def files_of(settings: Settings) -> Path:
    """Where the servers of this machine that use the store say so."""
    return store_of(settings).folder(data_folder())
