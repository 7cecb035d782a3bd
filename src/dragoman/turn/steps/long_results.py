"""A result that is too long for a model: it is shown a part of it, and the whole is kept."""

from __future__ import annotations

import logging
from dataclasses import replace

from dragoman.errors import StoreUnavailable
from dragoman.messages.message import ToolCall, ToolResult
from dragoman.store.store import Store
from dragoman.tools.output import bounded
from dragoman.tools.tool import Tool

NOT_KEPT = "[The whole output could not be stored: read_output has no more of it than this.]"
_log = logging.getLogger("dragoman.turn")


async def shorten(result: ToolResult, call: ToolCall, tool: Tool, store: Store) -> ToolResult:
    """What the model is shown; the whole is kept where that is not all of it."""
    shown = bounded(result.text, call.id, tool.max_lines, tool.max_bytes)
    if shown is result.text:
        return result
    try:
        blob = await store.put_blob(result.text.encode())
    except StoreUnavailable as error:  # it has done its work, and is not to lose all of its result
        _log.warning("the whole output of call %s is not kept: %s", call.id, error)
        return replace(result, text=f"{shown}\n{NOT_KEPT}", value=None)
    return replace(result, text=shown, value=None, blob=blob)
