"""Explain, in words that a user can act on, why an MCP server is unavailable."""

from __future__ import annotations

import re

import httpx2
from mcp import MCPError
from mcp.client.auth.exceptions import OAuthFlowError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from dragoman.errors import ConfigError
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.tools.mcp.diagnostics import Diagnostics
from dragoman.tools.mcp.stdio import NO_MCP

NO_MESSAGE = "server returned an error response"  # the SDK's words for a refusal without a message
CLOSED = "Connection closed"  # the SDK's words if nothing can be sent
BROKEN_OFF = "it broke off its answer"
_UNREAD = re.compile(
    r"(Failed to parse JSON response:|Failed to parse SSE message:|Unexpected content type:)(.*)", re.DOTALL
)
_INVALID = re.compile(r"(Invalid JSON: [^\[\n]{1,200})")


class LoginNeeded(OAuthFlowError):
    """The server requires a login, and no user can log in now."""


def describe_failure(error: BaseException, diagnostics: Diagnostics) -> str:
    """Return why a server is unavailable: what happened, and its last output if it had any."""
    cause = _first(error)
    if diagnostics.overflow:
        what = diagnostics.overflow
    elif diagnostics.status in (401, 403) and not isinstance(cause, OAuthFlowError):
        what = sentence("mcp.refused", status=diagnostics.status)
    elif isinstance(cause, MCPError) and (ours := own_words(cause, diagnostics)):
        what = ours
    elif isinstance(cause, MCPError) and diagnostics.status is not None:
        what = sentence("provider.with_status", message=describe(cause), status=diagnostics.status)
    else:
        what = describe(cause)
    last = diagnostics.stderr_tail
    text = sentence("mcp.had_said", what=what, last=last) if last else what
    return redact_text(text)


def needs_login(error: BaseException, diagnostics: Diagnostics) -> bool:
    return isinstance(_first(error), OAuthFlowError) or diagnostics.status == 401


def own_words(error: MCPError, diagnostics: Diagnostics) -> str:
    """Return what happened, if the SDK reports it as if the server had sent it. "" for the server's own
    message."""
    if error.message.startswith((NO_MCP, BROKEN_OFF)):
        return error.message[:2000]
    if error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream"):
        return f"{BROKEN_OFF}: {error.message}"
    if error.message.lower() == NO_MESSAGE and diagnostics.status in (401, 403):
        return sentence("mcp.refused", status=diagnostics.status)
    if error.message.lower() == NO_MESSAGE and diagnostics.status is not None:
        return sentence("mcp.status", status=diagnostics.status)
    if (unread := _UNREAD.match(error.message)) is None:
        return ""
    reason = _INVALID.search(unread[2])
    if unread[1].startswith("Unexpected"):
        return f"{NO_MCP}an answer of the type {unread[2].strip() or 'nothing'}"
    if reason is None and "validation error" in unread[2]:
        return f"{NO_MCP}an answer that is neither a result nor an error"
    return NO_MCP + reason[1].strip() if reason else unread[2].strip()[:500]


def describe(error: BaseException) -> str:
    match cause := _first(error):
        case LoginNeeded():
            return sentence("mcp.login")
        case OAuthFlowError():
            return sentence("mcp.login_failed", error=cause)
        case MCPError() if _closed(cause):
            return sentence("mcp.ended")
        case MCPError() if cause.message.startswith(NO_MCP):
            return cause.message[:500]
        case MCPError():
            return sentence("mcp.said", message=cause.message[:500])
        case ValidationError():
            fault = cause.errors()[0]
            return f"{NO_MCP}{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        case httpx2.HTTPStatusError():
            return sentence("mcp.status", status=cause.response.status_code)
        case httpx2.TransportError():
            return sentence("mcp.nothing_answers", error=str(cause) or type(cause).__name__)
        case ConfigError() | TimeoutError() | ConnectionError():
            return str(cause) or sentence("mcp.late")
        case OSError():
            what = f": {cause.filename}" if cause.filename else ""
            return sentence("mcp.not_started", error=cause.strerror or cause, what=what)
        case _:
            return f"{type(cause).__name__}: {str(cause)[:500]}"


def _first(error: BaseException) -> BaseException:
    """Return the cause inside nested exception groups. A closed connection is only a consequence."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_first(inner) for inner in error.exceptions]
    return next((cause for cause in causes if not _closed(cause)), causes[0])


def _closed(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
