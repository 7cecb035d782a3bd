"""Load all of Dragoman, its lazy imports and its caches, in the process that others are forked from
(`forks.py`)."""

from __future__ import annotations

import gc
import importlib
import pkgutil
from contextlib import suppress
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
from typer._click.core import Context
from typer.core import TyperArgument, TyperOption

import dragoman
from dragoman.cli.main import command_with
from dragoman.dialects.dialect import ANY
from dragoman.dialects.scanner import Scanner
from dragoman.messages.codec import Codec
from dragoman.messages.request import ToolSpec
from dragoman.providers import facts
from dragoman.providers.catalog import load_catalog
from dragoman.providers.facts import library
from dragoman.store.postgres.database import queries as postgres_queries
from dragoman.store.sqlite.readers import queries
from dragoman.stored_keys import _keyring
from dragoman.wire.options import _common, option_schemas


def _prepare(command: Any) -> None:
    """Prepare the argument parser, which is built at the first use."""
    for parameter in command.get_params(Context(command)):
        if isinstance(parameter, TyperOption | TyperArgument):
            parameter.get_runtime_param()
    for one in getattr(command, "commands", {}).values():
        _prepare(one)


for _found in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    _module = importlib.import_module(_found.name)
    for _value in vars(_module).values():
        if isinstance(_value, Codec):
            with suppress(ValueError):
                _value.load("")  # the codec is built at its first use

for _thinking in (True, False):  # the parser for calls is built at the first reply
    Scanner(ANY, [ToolSpec("add", "", {})], thinking=_thinking).feed("Hello.\n")
for _make in (_common, facts._file, library, queries, postgres_queries, option_schemas):
    _make()  # fill the cache
_keyring().backend._load_plugins()

_catalog = load_catalog()
for _provider in _catalog.providers.values():
    for _model in _provider.models:
        _catalog.traits(_provider, _model)  # compile their patterns

for _name in command_with("").commands:
    _prepare(command_with(_name))

gc.freeze()  # no fork need look through it
gc.enable()
