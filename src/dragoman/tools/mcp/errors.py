"""Says in words that a person can act on why an MCP server is not there."""

from __future__ import annotations

import httpx2
from mcp import MCPError
from mcp.client.auth.exceptions import OAuthFlowError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from dragoman.errors import ConfigError
from dragoman.redaction import redact_text
from dragoman.tools.mcp.diagnostics import Diagnostics
from dragoman.tools.mcp.messages import NO_MCP


class LoginNeeded(OAuthFlowError):
    """The server wants a person to log in, and this is no moment for it."""


def describe_failure(error: BaseException, diagnostics: Diagnostics) -> str:
    """Why a server is not there: what happened, and its own last words if it had any."""
    cause = _first(error)
    if diagnostics.overflow:
        what = diagnostics.overflow
    elif diagnostics.status in (401, 403) and not isinstance(cause, OAuthFlowError):
        what = f"it refused the key, or wants a login (HTTP {diagnostics.status})"
    elif isinstance(cause, MCPError) and diagnostics.status is not None:
        what = f"{describe(cause)} (HTTP {diagnostics.status})"
    else:
        what = describe(cause)
    text = f"{what}. It had said: {diagnostics.stderr_tail}" if diagnostics.stderr_tail else what
    return redact_text(text)


def needs_login(error: BaseException, diagnostics: Diagnostics) -> bool:
    return isinstance(_first(error), OAuthFlowError) or diagnostics.status == 401


def describe(error: BaseException) -> str:
    match cause := _first(error):
        case LoginNeeded():
            return "it wants a login"
        case OAuthFlowError():
            return f"the login did not work: {cause}"
        case MCPError() if _closed(cause):
            return "it ended, or closed the connection"
        case MCPError() if cause.message.startswith(NO_MCP):
            return cause.message[:500]
        case MCPError():
            return f"it said: {cause.message[:500]}"
        case ValidationError():
            fault = cause.errors(include_url=False, include_input=False)[0]
            return f"{NO_MCP}{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        case httpx2.HTTPStatusError():
            return f"it answered with HTTP {cause.response.status_code}"
        case httpx2.TransportError():
            return f"nothing answers there: {str(cause) or type(cause).__name__}"
        case ConfigError() | TimeoutError() | ConnectionError():
            return str(cause) or "it did not answer in time"
        case OSError():
            what = f": {cause.filename}" if cause.filename else ""
            return f"it cannot be started: {cause.strerror or cause}{what}"
        case _:
            return f"{type(cause).__name__}: {str(cause)[:500]}"


def _first(error: BaseException) -> BaseException:
    """The cause, out of the groups that task groups put around it. A closed connection is only its echo."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_first(inner) for inner in error.exceptions]
    return next((cause for cause in causes if not _closed(cause)), causes[0])


def _closed(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
