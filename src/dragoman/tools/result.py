"""Makes the stored result of what a tool returned: text, or JSON."""

from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json, to_jsonable_python

from dragoman.errors import ToolFailed
from dragoman.messages.boundary import read_with_margin
from dragoman.messages.message import File, ToolResult
from dragoman.tools.tool import ToolOutput

_AS_TEXT = json.JSONEncoder(ensure_ascii=False)


def result_of(output: Any) -> ToolResult:
    """Text stays text; any other value becomes JSON; None says that it is done."""
    whole = output if isinstance(output, ToolOutput) else ToolOutput(output)
    value, metadata = as_json(whole.value), as_json(whole.metadata)
    attachments = tuple(whole.attachments)
    if not isinstance(metadata, dict) or not all(isinstance(file, File) for file in attachments):
        raise ToolFailed("the tool returned metadata that is no object, or attachments that are no files")
    title = whole_text(whole.title) if whole.title else None
    if isinstance(value, str):
        return ToolResult(value, None, title, metadata, attachments)
    text = "done" if value is None else _AS_TEXT.encode(value)
    return ToolResult(text, value, title, metadata, attachments)


def as_json(value: Any) -> JsonValue:
    """The value as it will be read from the store. ToolFailed where it has no JSON."""
    if isinstance(value, str):
        return whole_text(str.__str__(value))  # a word of an Enum is a text like any other
    try:
        return read_with_margin(_bytes(value))
    except (ValueError, RecursionError) as error:
        raise ToolFailed(
            f"the tool gave a {type(value).__name__}, which is no JSON value: {error}"
        ) from error


def whole_text(text: str) -> str:
    """Halves of characters, such as file names that are no UTF-8 have, can be neither stored nor sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _bytes(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="strings")
    except ValueError:  # half a character somewhere, or no JSON at all
        return json.dumps(value, default=to_jsonable_python, ensure_ascii=False).encode("utf-8", "replace")
