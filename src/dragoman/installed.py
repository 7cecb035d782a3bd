"""What installed packages bring, by the entry points `dragoman.plugins`, `.tools` and `.providers`."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Literal, TypeAlias

from dragoman.errors import ConfigError

Kind: TypeAlias = Literal["plugins", "tools", "providers"]


@cache
def installed(kind: Kind) -> dict[str, EntryPoint]:
    """By name. Nothing of it is imported."""
    return {point.name: point for point in entry_points(group=f"dragoman.{kind}")}


def load_installed(kind: Kind, name: str, others: Iterable[str] = ()) -> object:
    """Return what an entry point names. Raise ConfigError if the import fails, or if neither `others` nor a
    package has the name."""
    points = installed(kind)
    if name not in points:
        known = [*others, *points]
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known {kind}: {', '.join(known) or 'none'}."
        raise ConfigError(f"No folder or installed package has {name!r}. {hint}")
    return import_point(points[name])


def import_object(path: str) -> object:
    """`package.module:Name` → the object. ConfigError says why it cannot be had."""
    module, mark, name = path.partition(":")
    if not module or not mark or not name:
        raise ConfigError(f"Invalid name {path!r}. Write it as package.module:Name.")
    return import_point(EntryPoint(name, path, "dragoman"))


def import_point(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:  # whatever it does while it is imported
        why = f"{type(error).__name__}: {error}"
        raise ConfigError(f"Dragoman cannot import {point.value}: {why}") from error


# What is not installed with the library alone, and the extra that brings it.


_EXTRAS = {  # package → its extra, and what needs it
    "typer": ("cli", "the terminal program"),
    "rich": ("cli", "the terminal program"),
    "prompt_toolkit": ("cli", "the chat in the terminal"),
    "fastapi": ("server", "the server"),
    "uvicorn": ("server", "the server"),
    "mcp": ("mcp", "an MCP server"),
    "mcp_types": ("mcp", "an MCP server"),  # which the first versions of mcp had not
    "pydantic_monty": ("code", "a program of a model"),
    "asyncpg": ("postgres", "a store in PostgreSQL"),
    "jwt": ("oidc", "signing in with OpenID Connect"),
    "PIL": ("media", "making a picture smaller for its model"),
}


def require(package: str) -> None:
    """ConfigError where it is not installed, with what to install."""
    if find_spec(package) is None:
        raise ConfigError(describe_missing(package) or f"{package} is not installed")


def describe_missing(package: str) -> str | None:
    """What to install; None where it is no package that an extra brings."""
    extra, what = _EXTRAS.get(package.partition(".")[0], (None, None))
    return f"{what} needs more: pip install 'dragoman[{extra}]'" if extra else None
