"""All of Dragoman, and what it imports only where it is used: what a process has from which others are
forked (`forks.py`)."""

from __future__ import annotations

import gc
import importlib
import pkgutil

import aiohttp.web  # noqa: F401
import asyncpg  # noqa: F401
import mcp.client.stdio
import mcp.server.mcpserver  # noqa: F401
import procrastinate  # noqa: F401
import prompt_toolkit  # noqa: F401
import psycopg_pool  # noqa: F401
import typer._adapters  # noqa: F401

import dragoman

for _module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    importlib.import_module(_module.name)

gc.collect()
gc.freeze()  # no fork need look through it
