"""Names for MCP tools that every provider accepts, the same each time for the same tool."""

from __future__ import annotations

import hashlib
import re

LONGEST = 64


def local_name(tool: str) -> str:
    """The tool's name in letters, digits, `_` and `-`. Where that changes it, a mark keeps it apart.

    It depends on nothing but the name, so that it stays when other tools come and go.
    """
    valid = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    return tool if valid == tool and 0 < len(tool) <= LONGEST - 2 else _marked(valid, tool, LONGEST - 2)


def offered_name(server: str, tool: str) -> str:
    """`server_tool`, cut to the length that fits, with a mark where it was cut."""
    name = f"{prefix(server)}_{local_name(tool)}"
    return name if len(name) <= LONGEST else _marked(name, f"{server}\0{tool}", LONGEST)


def prefix(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", server)


def _marked(text: str, whole: str, room: int) -> str:
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{text[: room - 7]}_{mark}"
