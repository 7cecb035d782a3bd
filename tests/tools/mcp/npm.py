"""The official servers, installed once from their lock file."""

from __future__ import annotations

from tests.npm import NODE, installed

__all__ = ["NODE", "script"]


def script(package: str, path: str) -> str:
    """The file of an installed package that Node runs."""
    found = installed("mcp_servers") / "node_modules" / "@modelcontextprotocol" / package / path
    assert found.exists(), f"{package} has no {path}"
    return str(found)
