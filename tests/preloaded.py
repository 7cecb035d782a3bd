"""All of Dragoman, what it imports only where it is used, and what it makes once and keeps: what a process
has from which others are forked (`forks.py`)."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from contextlib import suppress

import aiohttp.web  # noqa: F401
import asyncpg  # noqa: F401
import mcp.client.stdio
import mcp.server.mcpserver  # noqa: F401
import procrastinate  # noqa: F401
import prompt_toolkit  # noqa: F401
import psycopg_pool  # noqa: F401
import typer._adapters  # noqa: F401

import dragoman
from dragoman.messages.codec import Codec
from dragoman.providers.catalog import load_catalog

for _found in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    _module = importlib.import_module(_found.name)
    for _value in vars(_module).values():
        if isinstance(_value, Codec):
            with suppress(ValueError):
                _value.load("")  # what reads and writes such values is made at the first
load_catalog()

gc.collect()
gc.freeze()  # no fork need look through it
