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
from dragoman.dialects.dialect import ANY
from dragoman.dialects.scanner import Scanner
from dragoman.messages.codec import Codec
from dragoman.providers.catalog import load_catalog
from dragoman.server.app import routes
from dragoman.tools.builtin import BUILTIN
from dragoman.wire.media_options import option_schemas

for _found in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    _module = importlib.import_module(_found.name)
    for _value in vars(_module).values():
        if isinstance(_value, Codec):
            with suppress(ValueError):
                _value.load("")  # what reads and writes such values is made at the first
load_catalog()
for _route in routes().routes:  # what checks requests is made at the first, whatever it asks for
    _route.matches({"type": "http", "method": "GET", "path": "/nowhere", "headers": []})
_tools = [_tool.spec() for _tool in BUILTIN["basics"]().tools]
Scanner(ANY, _tools).feed("Hello.\n")  # and what finds calls in a reply, at the first reply
option_schemas()

gc.collect()
gc.freeze()  # no fork need look through it
