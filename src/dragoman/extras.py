"""What is not installed with the library alone, and the extra that brings it."""

from __future__ import annotations

from importlib.util import find_spec

from dragoman.errors import ConfigError

_EXTRAS = {  # package → its extra, and what needs it
    "typer": ("cli", "the terminal program"),
    "rich": ("cli", "the terminal program"),
    "prompt_toolkit": ("cli", "the chat in the terminal"),
    "fastapi": ("server", "the server"),
    "uvicorn": ("server", "the server"),
    "mcp": ("mcp", "an MCP server"),
    "mcp_types": ("mcp", "an MCP server"),  # which the first versions of mcp had not
    "asyncpg": ("postgres", "a store in PostgreSQL"),
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
