"""Passes the progress an MCP server reports on to its call, at a pace that people can read."""

from __future__ import annotations

import time

from pydantic import JsonValue

from dragoman.tools.tool import ToolContext

PACE = 0.05  # seconds between two reports; a flood is thinned out to this
LONGEST = 2000  # characters


class Reporter:
    """Passes on the first report, the last one, and as many between as are not too close to another."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._last = -PACE

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if now - self._last < PACE and progress != total:
            return
        self._last = now
        value: dict[str, JsonValue] = {"progress": progress}
        if total is not None:
            value["total"] = total
        if message:
            value["message"] = message[:LONGEST]
        self._context.progress(value)
