"""Check servers that require a login: a user makes it once, it is stored and renewed, and no turn waits for
it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from dragoman.tools.mcp.errors import LoginNeeded
from dragoman.tools.mcp.login import StoredLogin, TokenStore, login_at, new_login, stored_login
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from tests.fork_server import python
from tests.patience import PATIENCE
from tests.tools.mcp.conforming import Visitor
from tests.tools.mcp.guarded import Guarded, guarded
from tests.tools.mcp.rig import source

pytestmark = pytest.mark.slow

WANTS = "it requires a login: run `dragoman mcp test it`, or sign in at the page (Settings, Set-up)"
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a keyring, with a browser whose person says yes."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{BROWSER}" "$1"\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("DRAGOMAN_TRUST", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return tmp_path


async def run_mcp_test(home: Path, server: Guarded) -> str:
    """Run `dragoman mcp test` as a user would, and return its output next to the report."""
    (home / "dragoman.toml").write_text(f'[mcp.far]\nurl = "{server.url}"\nauth = "oauth"\n')
    process = await asyncio.create_subprocess_exec(
        *(*python("-m", "dragoman"), "mcp", "test", "far", "--json"),
        cwd=home,
        stdout=-1,
        stderr=-1,
        env={**os.environ},
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert [tool["name"] for tool in json.loads(out)["tools"]] == ["far_secret"]
    return err.decode()


async def log_in(server: Guarded) -> None:
    """Log in as that command does, in this process."""
    wanted, tokens, visitor = settings(server), TokenStore(server.url), Visitor()
    async with (
        new_login(wanted, visitor.visit, tokens) as provider,
        source(wanted, authorize=lambda _: provider) as far,
    ):
        assert [tool.name for tool in far.group().tools] == ["it_secret"]


def settings(server: Guarded) -> McpServer:
    return McpServer(url=server.url, auth="oauth")


async def test_a_turn_does_not_wait_for_a_login_but_says_how_to_make_one(home: Path) -> None:
    async with guarded() as server, source(settings(server), ready=False) as far:
        await far.ready()
        assert (far.state, far.error) == ("login", WANTS)
        assert server.registered == 0  # no login was started that could never be completed


async def test_a_login_is_made_in_the_browser_and_kept_for_its_owner_alone(home: Path) -> None:
    async with guarded() as server:
        told = await run_mcp_test(home, server)
        assert f"Log in with your browser: {server.base}/authorize?" in told
        file = home / "data" / "dragoman" / "mcp-logins.json"
        assert f"The login is kept in {file}, which only you can read, as there is no keyring." in told
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        async with source(settings(server)) as far:  # another process, as far as the login knows
            assert [tool.name for tool in far.group().tools] == ["it_secret"]
        assert [one["grant_type"] for one in server.asked] == ["authorization_code"]


async def test_a_login_that_is_over_is_renewed_where_it_was_given(home: Path) -> None:
    async with guarded() as server:
        server.lasts = 1
        await log_in(server)
        async with source(settings(server)):
            assert [one["grant_type"] for one in server.asked] == ["authorization_code", "refresh_token"]


async def test_a_login_that_was_taken_back_is_told(home: Path) -> None:
    async with guarded() as server:
        await log_in(server)
        server.valid.clear()
        async with source(settings(server), ready=False) as far:
            await far.ready()
            assert (far.state, far.error) == ("login", WANTS)


async def test_a_second_login_is_made_by_the_same_client(home: Path) -> None:
    async with guarded() as server:
        await log_in(server)
        server.valid.clear()
        client, login = TokenStore(server.url).login().client, stored_login(settings(server))
        assert client is not None
        assert login is not None
        assert login.context.client_metadata.redirect_uris == client.redirect_uris
        await log_in(server)
        assert server.registered == 1


async def test_who_was_registered_by_the_page_is_registered_anew_in_the_terminal(home: Path) -> None:
    """The page's browser came back to an address at which the terminal cannot listen."""
    async with guarded() as server:
        server.redirects["page"] = ["https://dragoman.example/callback"]
        page = OAuthClientInformationFull(
            client_id="page", redirect_uris=[AnyUrl("https://dragoman.example/callback")]
        )
        TokenStore(server.url).save(client=page)
        await log_in(server)
        assert server.registered == 1


async def test_a_login_that_works_is_left_as_it_is(home: Path) -> None:
    """This holds also if another process listens at the address of the login, as the web UI does at
    its own."""
    async with guarded() as server:
        await log_in(server)
        made = TokenStore(server.url).login()
        assert made.client is not None
        assert made.client.redirect_uris is not None
        taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", made.client.redirect_uris[0].port)
        async with taken:
            await run_mcp_test(home, server)
        assert (TokenStore(server.url).login(), server.registered) == (made, 1)


async def test_a_server_that_refuses_us_without_a_word_on_logins_is_told_apart(home: Path) -> None:
    async with guarded() as server:
        far = McpSource("far", McpServer(url=server.url), patience=10)
        await far.ready()
        assert far.state == "login"
        assert far.error.startswith("it refused the key, or requires a login (HTTP 401)")
        assert 'auth = "oauth"' in far.error
        await far.close()


def test_a_login_is_forgotten_with_its_server(tmp_path: Path) -> None:
    one, other = (
        TokenStore(url, tmp_path / "logins.json", use_keyring=False) for url in ("http://a", "http://b")
    )
    one.save(expires=time.time())
    other.save(expires=1.0)
    one.forget()
    assert one.login().expires is None
    assert other.login().expires == 1.0


def test_a_file_that_cannot_be_read_is_no_login(tmp_path: Path) -> None:
    for damaged in ("{", '{"http://a": "{"}', '{"http://a": "{\\"expires\\": []}"}'):
        (tmp_path / "logins.json").write_text(damaged)
        tokens = TokenStore("http://a", tmp_path / "logins.json", use_keyring=False)
        assert tokens.login() == StoredLogin()
    with pytest.raises(LoginNeeded):
        stored_login(McpServer(url="http://a", auth="oauth"), tokens)


def test_who_wants_no_login_gets_none() -> None:
    assert stored_login(McpServer(url="http://a")) is None


@pytest.mark.parametrize(
    ("secret", "found", "method"), [("${SECRET}", "s3cret", "client_secret_basic"), (None, None, "none")]
)
async def test_a_client_that_the_settings_name_is_used(
    tmp_path: Path, secret: str | None, found: str | None, method: str
) -> None:
    server = McpServer(url="http://a", auth="oauth", client_id="ours", client_secret=secret)
    tokens = TokenStore("http://a", tmp_path / "logins.json", use_keyring=False)

    async def never(*_: object) -> Any:
        raise AssertionError

    back = "http://127.0.0.1:8000/callback"
    login_at(back, server, tokens, show=never, answer=never, find={"SECRET": "s3cret"}.get)
    client = tokens.login().client
    assert client is not None
    assert (client.client_id, client.client_secret) == ("ours", found)
    assert (client.token_endpoint_auth_method, client.redirect_uris) == (method, [AnyUrl(back)])


ANOTHER_LOGIN = "the browser came back from another login"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("code=stolen&state=another", ANOTHER_LOGIN),
        ("code=stolen", ANOTHER_LOGIN),
        ("error=access_denied&error_description=not+today", "not today"),
        ("error=access_denied", "access_denied"),
        ("", "there was no code"),
    ],
)
async def test_a_browser_that_comes_back_from_another_login_is_not_told_that_it_worked(
    home: Path, query: str, why: str
) -> None:
    """The page says what the program says."""
    pages: list[httpx2.Response] = []

    async def visit(url: str) -> None:
        (back,) = parse_qs(urlsplit(url).query)["redirect_uri"]
        async with httpx2.AsyncClient() as browser:
            assert (await browser.get(f"{back}/other?code=stolen")).status_code == 404
            pages.append(await browser.get(f"{back}?{query}"))

    async with guarded() as server:
        tokens = TokenStore(server.url)
        async with new_login(settings(server), visit, tokens) as provider:
            trial = McpSource("far", settings(server), authorize=lambda _: provider)
            await trial.ready()
            await trial.close()
        assert server.asked == []  # no code was exchanged
    assert trial.state == "login"
    assert pages[0].status_code == 400
    assert f"The login did not work: {why}" in pages[0].text
