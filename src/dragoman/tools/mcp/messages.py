"""Reads a line of an MCP server as a message, also one that is hard to read: whoever waits for it is told."""

from __future__ import annotations

import re

import mcp_types as types
from pydantic import ValidationError

from dragoman.wire.surrogates import join_all, read_json

NO_MCP = "it sent what is no MCP: "

_ID = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_AT_START = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb'\s*,\s*(?:"result"|"error")')
_AT_END = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")
_TAIL = 300  # bytes at its end in which the name of an answer is looked for


def read_message(line: bytes) -> types.JSONRPCMessage | None:
    """None for what is no message. An answer that cannot be read, because it is nested too deep or holds
    numbers without measure, is an error to whoever asked for it: nothing else would come."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        why = str(error.errors(include_url=False, include_input=False)[0]["msg"])
    try:
        value = join_all(read_json(line))  # cut in the middle of a character, or no UTF-8
    except (ValueError, RecursionError):
        return _unreadable(_id_of(line), why)
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        answer = isinstance(value, dict) and "method" not in value
        why = "an answer that is neither a result nor an error"
        return _unreadable(value.get("id") if isinstance(value, dict) and answer else None, why)


def _id_of(line: bytes) -> int | str | None:
    """Of an answer that is no JSON to us: its name stands before the result, or behind it."""
    found = _AT_START.match(line) or _AT_END.search(line[-_TAIL:])
    if found is None:
        return None
    return int(found[1]) if found[1].isdigit() else found[1].strip(b'"').decode(errors="replace")


def _unreadable(id: object, why: str) -> types.JSONRPCMessage | None:
    if not isinstance(id, int | str):
        return None
    error = types.ErrorData(code=types.PARSE_ERROR, message=NO_MCP + why)
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=error)
