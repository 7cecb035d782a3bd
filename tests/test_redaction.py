"""Check that no password or key is shown in settings, command lines, errors and logs (U2)."""

from __future__ import annotations

import io
import json
import logging
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.redaction import (
    HIDDEN,
    RedactingFormatter,
    redact_arguments,
    redact_text,
    redact_value,
)
from dragoman.tools.mcp.servers import McpServer
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture

# Secrets that no other word of a line contains, so a match means that the secret was shown.
secrets = st.from_regex(r"[A-Za-z0-9]{3,10}Zq9[A-Za-z0-9]{3,30}", fullmatch=True)
names = st.sampled_from(
    [
        "token",
        "api_key",
        "API-KEY",
        "apiKey",
        "key",
        "GITHUB_TOKEN",
        "password",
        "passwd",
        "client_secret",
        "aws_secret_access_key",
        "AUTHORIZATION",
        "accessToken",
        "db-password",
        "x-api-key",
        "private_key",
    ]
)
PLACES = (
    "https://user:{secret}@example.org/a",
    "https://{secret}@example.org",
    "postgresql://ada:a@{secret}@host:5432/db?x=y",
    "cannot reach http://u:{secret}@10.0.0.1/v1/models, status 500",
    "https://example.org/mcp?{name}={secret}&x=1",
    "https://example.org/mcp?x=1&{name}={secret}",
    "started with --{name} {secret} --port 80",
    "started with --{name}={secret}",
    "the variable {name}={secret} is set",
    '{{"{name}": "{secret}"}}',
    "{{'{name}': '{secret}'}}",
    "Authorization: Bearer {secret}",
    "Authorization: {secret}",
    "x-api-key: {secret}",
    "curl -H 'authorization: token {secret}'",
    "it said sk-{secret}",
    "it said ghp_{secret}{secret}",
)


@given(secrets, names, st.sampled_from(PLACES))
def test_a_secret_is_hidden_in_whatever_place_it_stands(secret: str, name: str, place: str) -> None:
    """U2: and hiding it twice changes nothing more."""
    shown = redact_text(f"before. {place.format(secret=secret, name=name)} after.")
    assert secret not in shown
    assert "Zq9" not in shown
    assert shown.startswith("before. ")
    assert redact_text(shown) == shown


@given(secrets, names)
def test_a_command_line_shows_no_secret(secret: str, name: str) -> None:
    """U2: by its flag, its name, its header, its address, or because it looks like nothing but a key."""
    lines = (
        [f"--{name}", secret],
        [f"--{name}={secret}"],
        [f"{name}={secret}"],
        ["-H", f"Authorization: Bearer {secret}"],
        ["--header", f"{name}: {secret}"],
        [f"redis://:{secret}@host"],
        [f"{secret}0123456789abcdef"],
        [f"https://example.org/s/{secret}0123456789abcdef/mcp"],
    )
    for line in lines:
        shown = redact_arguments(["-y", "server", *line, "--port", "80"])
        assert "Zq9" not in " ".join(shown), line
        assert shown[:2] == ["-y", "server"]
        assert shown[-2:] == ["--port", "80"]
        server = McpServer(command="npx", args=tuple(line))
        assert "Zq9" not in server.where
    assert "Zq9" not in McpServer(url=f"https://u:{secret}@example.org/mcp?{name}={secret}").where


@given(secrets, names)
def test_settings_show_no_secret_however_deep_it_stands(secret: str, name: str) -> None:
    """U2"""
    settings = {
        "private": {"phone": secret},
        "mcp": {"x": {"env": {"A": secret}, "args": [f"--{name}", secret], "headers": {"B": secret}}},
        "providers": {
            "p": {"base_url": f"https://a:{secret}@h/v1", name: secret, "list": [f"{name}={secret}"]}
        },
    }
    shown = json.dumps(redact_value(json.loads(json.dumps(settings))))
    assert "Zq9" not in shown
    assert "phone" in shown


@pytest.mark.parametrize("name", ["pin", "otp", "db_password"])
def test_a_number_is_a_secret_under_the_name_of_one(name: str) -> None:
    """This holds in settings and in texts, and whether a secret exists is not secret (U2)."""
    assert redact_value({name: 1234, "x": [{name: [5.5, -6]}], "port": 80}) == {
        name: HIDDEN,
        "x": [{name: [HIDDEN, HIDDEN]}],
        "port": 80,
    }
    assert redact_value({name: True}) == {name: True}
    assert redact_text(f'{{"{name}": 1234, "port": 80}}') == f'{{"{name}": {HIDDEN}, "port": 80}}'


@pytest.mark.parametrize(
    "text",
    [
        "mcp.x: unknown key",
        "password: it should be a string",
        "max_tokens=5, monkey=1, tokens: 12",
        "set OPENAI_API_KEY to a valid key",
        "https://example.org/v1/models?limit=5#top does not answer",
        "git@github.com:owner/project.git",
        "--token ${GITHUB_TOKEN} and Bearer ${TOKEN} and http://${USER}:${PASSWORD}@host/",
        "notes/secret-plans.txt, line 3: password_from",
        "npx -y @modelcontextprotocol/server-filesystem /srv/data",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    """U2: references, too: they say where a secret is, and not what it is."""
    assert redact_text(text) == text


def test_a_reference_with_something_to_fall_back_to_is_hidden() -> None:
    """U2"""
    assert redact_arguments(["--token", "${TOKEN:-hunter2}"]) == ["--token", HIDDEN]
    assert redact_value({"env": {"A": "${A}", "B": "${B:-hunter2}"}}) == {"env": {"A": "${A}", "B": HIDDEN}}


@given(st.text(max_size=300))
def test_any_text_can_be_looked_at(text: str) -> None:
    redact_text(text)
    redact_arguments(text.split(" "))


@pytest.mark.parametrize("piece", ["a-", "key-", "://", "?token=", "'a", "--key ", "https://a/"])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    """An error can repeat text from an unauthenticated client (U2)."""
    began = time.process_time()
    redact_text(piece * 20_000)
    assert time.process_time() - began < 20


def test_the_log_hides_what_an_exception_says() -> None:
    """U2: in the message, its arguments and the traceback."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(RedactingFormatter())
    log = logging.getLogger("tests.redaction")
    log.propagate = False
    log.addHandler(handler)
    try:
        raise RuntimeError("cannot reach https://ada:hunter2@example.org")
    except RuntimeError:
        log.exception("asked %s", "http://x/?token=hunter2")
    assert "RuntimeError" in written.getvalue()
    assert "hunter2" not in written.getvalue()


@pytest.mark.slow
def test_no_command_prints_a_secret(tmp_path: Path, cli: Cli) -> None:  # noqa: F811 - the fixture
    """Most of these commands used to print passwords in addresses and arguments (U2)."""
    (tmp_path / "dragoman.toml").write_text(
        """
store = "chat.db"
model = "mine/m"
private = {phone = "hunter2 hunter2"}
[providers.mine]
base_url = "http://ada:hunter2@127.0.0.1:1/v1"
[mcp.one]
command = "true"
args = ["--api-key", "hunter2", "postgres://ada:hunter2@127.0.0.1/x", "TOKEN=hunter2"]
env = {A = "hunter2", B = "${HOME}"}
[mcp.two]
url = "http://ada:hunter2@127.0.0.1:1/mcp?key=hunter2"
headers = {A = "hunter2"}
""",
        "utf-8",
    )
    shown = []
    for command in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["mcp", "list"],
        ["mcp", "list", "--json"],
        ["mcp", "list", "--check"],
        ["tools"],
        ["tools", "--json"],
        ["tools", "--check"],
        ["models", "--json"],
        ["config", "check"],
    ):
        ended = cli(*command)
        shown.append(ended.out + ended.err)
    for command in (["doctor"], ["doctor", "--json"], ["mcp", "test", "one"], ["mcp", "test", "two"]):
        ended = cli(*command, status=1)
        shown.append(ended.out + ended.err)
    assert [text for text in shown if "hunter2" in text] == []
    assert HIDDEN in shown[0]
    assert "${HOME}" in shown[0]


@pytest.mark.parametrize(
    "secret",
    [
        "nvapi-0123456789abcdef",
        "pplx-0123456789abcdefghij0123",
        "csk-0123456789abcdefghij0123",
        "dapi0123456789abcdef0123456789abcdef",
        "ABSKQmVkcm9ja0FQSUtleS0wMTIzNDU2Nzg5",
        "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
    ],
)
def test_u2_keys_of_the_clouds_are_known_by_their_shape(secret: str) -> None:
    assert secret.strip()[-12:] not in redact_text(f"it said {secret}")
