"""Load extensions of installed packages, by the entry points `dragoman.plugins`, `.tools` and
`.providers`."""

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
    """Return the entry points by name, without importing them."""
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
    """Return the object of `package.module:Name`. Raises ConfigError with the reason if that is
    impossible."""
    module, mark, name = path.partition(":")
    if not module or not mark or not name:
        raise ConfigError(f"Invalid name {path!r}. Write it as package.module:Name.")
    return import_point(EntryPoint(name, path, "dragoman"))


def import_point(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:  # The import can raise any exception.
        why = f"{type(error).__name__}: {error}"
        raise ConfigError(f"Dragoman cannot import {point.value}: {why}") from error


# These packages are not installed with the library alone, and an extra adds them.


_EXTRAS = {  # package → its extra, and the part that needs it
    "typer": ("cli", "the terminal program"),
    "rich": ("cli", "the terminal program"),
    "prompt_toolkit": ("cli", "the chat in the terminal"),
    "fastapi": ("server", "the server"),
    "uvicorn": ("server", "the server"),
    "mcp": ("mcp", "an MCP server"),
    "mcp_types": ("mcp", "an MCP server"),  # The first versions of mcp lacked it.
    "pydantic_monty": ("code", "a program of a model"),
    "asyncpg": ("postgres", "a store in PostgreSQL"),
    "jwt": ("oidc", "signing in with OpenID Connect"),
    "PIL": ("media", "making a picture smaller for its model"),
}


def require(package: str) -> None:
    """Raise ConfigError with the command that installs the package, if it is missing."""
    if find_spec(package) is None:
        raise ConfigError(describe_missing(package) or f"{package} is not installed")


def describe_missing(package: str) -> str | None:
    """Return how to install a package, or None if no extra contains it."""
    extra, what = _EXTRAS.get(package.partition(".")[0], (None, None))
    return f"{what} needs more: pip install 'dragoman[{extra}]'" if extra else None
