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
from dragoman.tools.mcp.errors import LoginNeeded, describe, describe_failure, needs_login
from dragoman.tools.mcp.stdio import NO_MCP

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
