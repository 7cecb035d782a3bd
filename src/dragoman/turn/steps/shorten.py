"""Shows a model both ends of a long result, and stores the whole for `read_output`."""

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
    """Return the text if it is short enough, else its two ends, which never overlap."""
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
    """Return as many whole lines as fit. If more than half the room is left, add part of the next line."""
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
    """Return the result for the model, and store the whole if it is longer."""
    shown = bounded(result.text, call.id, tool.max_lines, tool.max_bytes)
    if shown is result.text:
        return result
    if call.made_in is not None and result.value is not None:  # The program gets the value.
        result = replace(result, metadata={**result.metadata, "whole": "json"})
    try:
        blob = await store.put_blob(result.text.encode())
    except StoreUnavailable as error:  # The tool has done its work, so keep at least the shortened result.
        _log.warning("cannot keep the whole output of call %s: %s", call.id, error)
        return replace(result, text=f"{shown}\n{NOT_KEPT}", value=None)
    return replace(result, text=shown, value=None, blob=blob)
