"""All of Dragoman, what it imports only where it is used, and what it makes once and keeps: what a process
has from which others are forked (`forks.py`)."""

from __future__ import annotations

import ctypes
import gc
import importlib
import pkgutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp.web  # noqa: F401
import anyio._backends._asyncio  # noqa: F401
import asyncpg  # noqa: F401
import genai_prices  # noqa: F401
import jsonschema.validators  # noqa: F401
import mcp.client.stdio
import mcp.server.mcpserver  # noqa: F401
import procrastinate  # noqa: F401
import prompt_toolkit.input.vt100
import prompt_toolkit.key_binding.bindings.search
import prompt_toolkit.patch_stdout  # noqa: F401
import psycopg_pool  # noqa: F401
import rich._emoji_codes  # noqa: F401
import typer._adapters
import typer._click.decorators
import typer.rich_utils  # noqa: F401
import yaml  # noqa: F401
from fastapi.routing import _IncludedRouter
from typer.core import TyperArgument, TyperOption

import dragoman
from dragoman.cli.main import command_with
from dragoman.dialects.dialect import ANY
from dragoman.dialects.scanner import Scanner
from dragoman.messages.codec import Codec
from dragoman.messages.request import ToolSpec
from dragoman.providers import facts
from dragoman.providers.catalog import load_catalog
from dragoman.providers.prices import library
from dragoman.server.app import _included
from dragoman.store.postgres.database import queries as postgres_queries
from dragoman.store.sqlite.queries import queries
from dragoman.stored_keys import _keyring
from dragoman.wire.options import _common

_MAPS = Path("/proc/self/maps")
_LARGE = 2 << 20  # bytes
_COLLAPSE = 25  # MADV_COLLAPSE of Linux


def _prepare(command: Any) -> None:
    """What reads its arguments is made at the first."""
    for parameter in command.params:
        if isinstance(parameter, TyperOption | TyperArgument):
            parameter.get_runtime_param()
    for one in getattr(command, "commands", {}).values():
        _prepare(one)


def _join_pages() -> None:
    """Into large ones, where the system can: each fork copies the table of all pages, and clears it."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in _MAPS.read_text("utf-8").splitlines():
        area, rights, _, _, file, *_ = line.split()
        if "w" in rights and file == "0":
            begin, end = (int(at, 16) for at in area.split("-"))
            for at in range(-(-begin // _LARGE) * _LARGE, end - _LARGE + 1, _LARGE):
                madvise(at, _LARGE, _COLLAPSE)  # refused where that is not known


for _found in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    _module = importlib.import_module(_found.name)
    for _value in vars(_module).values():
        if isinstance(_value, Codec):
            with suppress(ValueError):
                _value.load("")  # what reads and writes such values is made at the first

_tools = [ToolSpec("add", "", {})]
for _thinking in (True, False):
    Scanner(ANY, _tools, thinking=_thinking).feed("What a model writes in which calls may be found.")

for _route in _included():
    if isinstance(_route, _IncludedRouter):
        _route.effective_candidates()  # made at the first request
for _make in (_common, facts._file, library, queries, postgres_queries):
    _make()  # what is kept
_keyring().backend._load_plugins()

_catalog = load_catalog()
for _provider in _catalog.providers.values():
    for _model in _provider.models:
        _catalog.traits(_provider, _model)  # their patterns are compiled

for _name in command_with("").commands:
    _prepare(command_with(_name))

gc.collect()
gc.freeze()  # no fork need look through it
if _MAPS.exists():
    _join_pages()
