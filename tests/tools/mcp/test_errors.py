"""Why a server is not available, in words for a person."""

from __future__ import annotations

import httpx2
import pytest
from mcp import MCPError
from mcp.client.auth.exceptions import OAuthFlowError
from mcp_types import CONNECTION_CLOSED
from pydantic import TypeAdapter, ValidationError

from dragoman.errors import ConfigError
from dragoman.tools.mcp.diagnostics import Diagnostics
from dragoman.tools.mcp.errors import (
    BROKEN_OFF,
    NO_MESSAGE,
    LoginNeeded,
    describe,
    describe_failure,
    needs_login,
    own_words,
)
from dragoman.tools.mcp.stdio import NO_MCP, read_message

CLOSED = MCPError(CONNECTION_CLOSED, "Connection closed")
REQUEST = httpx2.Request("GET", "http://a/")


def invalid() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, list[int]]).validate_python({"a": ["x"]})
    return caught.value


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LoginNeeded(), "it requires a login"),
        (OAuthFlowError("denied"), "the login failed: denied"),
        (CLOSED, "it ended, or closed the connection"),
        (MCPError(1, f"{NO_MCP}{'x' * 600}"), f"{NO_MCP}{'x' * (500 - len(NO_MCP))}"),
        (MCPError(1, "y" * 600), f"it said: {'y' * 500}"),
        (invalid(), f"{NO_MCP}a.0: Input should be a valid integer, unable to parse string as an integer"),
        (
            httpx2.HTTPStatusError("no", request=REQUEST, response=httpx2.Response(418)),
            "it answered with HTTP 418",
        ),
        (httpx2.ConnectError("refused"), "nothing answers there: refused"),
        (httpx2.ConnectError(""), "nothing answers there: ConnectError"),
        (ConfigError("KEY is missing"), "KEY is missing"),
        (TimeoutError(), "it did not answer in time"),
        (FileNotFoundError(2, "No such file", "/bin/x"), "Dragoman cannot start it: No such file: /bin/x"),
        (PermissionError("no"), "Dragoman cannot start it: no"),
        (RuntimeError("z" * 600), f"RuntimeError: {'z' * 500}"),
        (ExceptionGroup("", [CLOSED, ExceptionGroup("", [ConfigError("the cause")])]), "the cause"),
        (ExceptionGroup("", [CLOSED, CLOSED]), "it ended, or closed the connection"),
    ],
)
def test_an_error_is_told_in_words(error: Exception, said: str) -> None:
    """A closed connection is told only if nothing else happened."""
    assert describe(error) == said


def test_a_failure_is_told_with_what_the_server_said_last() -> None:
    """Without secrets."""
    diagnostics = Diagnostics()
    diagnostics.status = 500
    assert describe_failure(MCPError(1, "no"), diagnostics) == "it said: no (HTTP 500)"
    diagnostics.status = 401
    assert describe_failure(MCPError(1, "no"), diagnostics).startswith("it refused the key")
    assert needs_login(RuntimeError(), diagnostics)
    assert describe_failure(LoginNeeded(), diagnostics) == "it requires a login"
    diagnostics.overflow = "it sent too much"
    diagnostics.add_stderr(b"bye\n")
    assert describe_failure(RuntimeError(), diagnostics) == "it sent too much. Its last words: bye"


@pytest.mark.parametrize(
    ("code", "message", "status", "said"),
    [
        (1, f"{NO_MCP}{'x' * 3000}", None, f"{NO_MCP}{'x' * (2000 - len(NO_MCP))}"),
        (1, f"{BROKEN_OFF}: gone", 500, f"{BROKEN_OFF}: gone"),
        (CONNECTION_CLOSED, "SSE stream ended", None, f"{BROKEN_OFF}: SSE stream ended"),
        (1, "SSE stream ended", None, ""),
        (CONNECTION_CLOSED, "Connection closed", None, ""),
        (1, NO_MESSAGE.upper(), 401, "it refused the key, or requires a login (HTTP 401)"),
        (1, NO_MESSAGE, 403, "it refused the key, or requires a login (HTTP 403)"),
        (1, NO_MESSAGE, 500, "it answered with HTTP 500"),
        (1, NO_MESSAGE, None, ""),
        (1, "not now", 500, ""),
        (1, "Unexpected content type: text/html", None, f"{NO_MCP}an answer of the type text/html"),
        (1, "Unexpected content type:", None, f"{NO_MCP}an answer of the type nothing"),
        (
            1,
            "Failed to parse SSE message: Invalid JSON: no key [type=x",
            None,
            f"{NO_MCP}Invalid JSON: no key",
        ),
        (
            1,
            "Failed to parse JSON response: 2 validation errors",
            None,
            f"{NO_MCP}an answer that is neither a result nor an error",
        ),
        (1, f"Failed to parse JSON response: {'y' * 600}", None, "y" * 500),
    ],
)
def test_what_the_sdk_says_in_the_servers_name_is_told_as_what_happened(
    code: int, message: str, status: int | None, said: str
) -> None:
    diagnostics = Diagnostics()
    diagnostics.status = status
    assert own_words(MCPError(code, message), diagnostics) == said


def test_a_request_without_sense_is_no_answer() -> None:
    """Its ID is the server's own, and no call of ours waits for it."""
    assert read_message(b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n') is None
