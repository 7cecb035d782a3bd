"""Signing in and out at a certified OpenID Connect provider, from npm, as a browser does it (V4)."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urljoin, urlsplit

import aiohttp
import pytest

from dragoman.server.oidc import OidcSettings
from dragoman.wire.scripted import says
from tests.cli.program import clean_environment
from tests.npm import NODE, TESTS, installed
from tests.patience import PATIENCE
from tests.runtimes import runtime_with
from tests.server.oidc_scene import Browser
from tests.server.site import Site, serving

pytestmark = pytest.mark.slow
SECRET = "a secret: with/odd+signs and spaces"


@asynccontextmanager
async def site_and_provider(folder: Path, **more: object) -> AsyncIterator[Site]:
    """A server, and a provider of another program that knows it."""
    try:
        package = await asyncio.to_thread(installed, "oidc_provider")
    except (AssertionError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install the provider here: {error}")
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    process = await asyncio.create_subprocess_exec(
        *(NODE, str(TESTS / "oidc_provider" / "provider.mjs"), str(package), address, SECRET),
        env=clean_environment(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        issuer = json.loads(await process.stdout.readline())["issuer"]
        oidc = OidcSettings(
            issuer=issuer,
            client_id="dragoman",
            client_secret=SECRET,
            allowed_groups=frozenset({"chat"}),
            admin_group="ops",
        )
        async with (
            runtime_with(folder, [says("x")]) as runtime,
            serving(folder, runtime, oidc=oidc, listener=listener) as site,
        ):
            yield site
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def at_provider() -> AsyncIterator[aiohttp.ClientSession]:
    """A browser's cookies at the provider."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def walk(session: aiohttp.ClientSession, url: str, back: str, login: str) -> str:
    """Follow the provider's pages, fill in its forms, until they lead back. Returns the address."""
    form: dict[str, str] | None = None
    while not url.startswith(back):
        method = "GET" if form is None else "POST"
        async with session.request(method, url, data=form, allow_redirects=False) as response:
            text, form = await response.text(), None
            if response.status in (302, 303):
                url = urljoin(url, response.headers["location"])
                continue
            assert response.status == 200, text
            action = re.search(r'<form[^>]*action="([^"]+)"', text)
            assert action is not None, text
            fields = re.findall(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"', text)
            form = {**dict(fields), "login": login, "password": "any", "logout": "yes"}
            url = urljoin(url, action[1])
    return url


async def sign_in(site: Site, browser: Browser, session: aiohttp.ClientSession, login: str) -> int:
    returned = await walk(session, await browser.begin("/c/one"), f"{site.url}/oidc/callback", login)
    return (await browser.come_back(dict(parse_qsl(urlsplit(returned).query)))).status


async def test_users_sign_in_and_out_at_a_real_provider(tmp_path: Path) -> None:
    """Groups come from the provider's user info endpoint, and its sign-out reaches another browser of the
    session (V4)."""
    async with site_and_provider(tmp_path) as site, at_provider() as session, at_provider() as other:
        ada, again, eve = Browser(site), Browser(site), Browser(site)
        async with asyncio.timeout(PATIENCE):
            assert await sign_in(site, ada, session, "ada") == 303
            assert await sign_in(site, again, session, "nobody asks") == 303
            assert await sign_in(site, eve, other, "eve") == 403
            assert [await one.who() for one in (ada, again, eve)] == ["ada", "ada", None]
            assert (await ada.ask("GET", "/api/audit")).status == 200  # by her group
            signed_out = await ada.ask("POST", "/api/logout")
            assert await walk(session, signed_out.body["url"], f"{site.url}/", "") == f"{site.url}/"
            while await again.who() is not None:  # noqa: ASYNC110 - the provider tells the server when it wants
                await asyncio.sleep(0.02)
        entries = await site.runtime.store.audit()
        assert {one.action for one in entries} == {
            *("user.added", "sign_in.done", "sign_in.failed", "sign_out.done")
        }
