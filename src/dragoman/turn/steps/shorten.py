"""Shows a model both ends of a result that is too long, and stores the whole, which `read_output` reads."""

from __future__ import annotations

import logging
from dataclasses import replace

from dragoman.errors import StoreUnavailable
from dragoman.messages.message import ToolCall, ToolResult
from dragoman.store.store import Store
from dragoman.tools.tool import Tool

NOT_KEPT = "[The whole output could not be stored: read_output has no more of it than this.]"
_log = logging.getLogger("dragoman.turn")


def bounded(text: str, call: str, max_lines: int, max_bytes: int) -> str:
    """The text itself if it is short enough, else its two ends. They never meet."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= max_lines and len(text.encode()) <= max_bytes:
        return text
    head = _fit(lines, max_lines // 2, max_bytes // 2, from_end=False)
    tail = _fit(lines, max_lines - max_lines // 2, max_bytes - max_bytes // 2, from_end=True)
    left_out = len(text) - len(head) - len(tail)
    note = (
        f"\n[… {left_out} of {len(text)} characters ({len(lines)} lines in all) are left out here; "
        f"read_output(call={call!r}, start=LINE) shows them …]\n"
    )
    return head + note + tail


def _fit(lines: list[str], max_lines: int, max_bytes: int, *, from_end: bool) -> str:
    """As many whole lines as fit. Where that leaves more than half the room, a piece of the next one too."""
    chosen: list[str] = []
    room = max_bytes
    for line in reversed(lines) if from_end else lines:
        size = len(line.encode())
        if len(chosen) == max_lines:
            break
        if size > room:
            if room > max_bytes // 2:
                data = line.encode()
                chosen.append((data[-room:] if from_end else data[:room]).decode(errors="ignore"))
            break
        chosen.append(line)
        room -= size
    return "".join(reversed(chosen) if from_end else chosen)


async def shorten(result: ToolResult, call: ToolCall, tool: Tool, store: Store) -> ToolResult:
    """What the model is shown; the whole is kept where that is not all of it."""
    shown = bounded(result.text, call.id, tool.max_lines, tool.max_bytes)
    if shown is result.text:
        return result
    if call.made_in is not None and result.value is not None:  # its program gets the value
        result = replace(result, metadata={**result.metadata, "whole": "json"})
    try:
        blob = await store.put_blob(result.text.encode())
    except StoreUnavailable as error:  # it has done its work, and is not to lose all of its result
        _log.warning("cannot keep the whole output of call %s: %s", call.id, error)
        return replace(result, text=f"{shown}\n{NOT_KEPT}", value=None)
    return replace(result, text=shown, value=None, blob=blob)
