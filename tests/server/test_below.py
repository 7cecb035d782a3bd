"""Check a server below a path, behind a proxy that strips the path and behind one that does not (U1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import TypeAdapter, ValidationError

from dragoman.config.tables import ServerTable
from dragoman.web_address import parse_path
from dragoman.wire.scripted import says
from tests.server.proxy import shown_below
from tests.server.site import served

PROXY = ["127.0.0.1"]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"path": "/chat"}, id="set, and the proxy takes it off"),
        pytest.param({"path": "/chat", "strip": False}, id="set, and the proxy leaves it"),
        pytest.param({"says": {"X-Forwarded-Prefix": "/chat/"}}, id="said by a named proxy"),
    ],
)
async def test_a_turn_runs_below_a_path(tmp_path: Path, how: dict[str, Any]) -> None:
    """U1: signed in by the link, whose cookie goes nowhere else."""
    path = how.pop("path", "")
    async with (
        served(tmp_path, [says("hello")], proxies=PROXY, path=path) as site,
        shown_below("/chat", site.url, **how) as url,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
    ):
        async with http.get(f"{url}/c/conv_1") as page:
            text = await page.text()
            assert '"/chat/assets/' in text
            assert '"/assets/' not in text
        script = text.partition('src="')[2].partition('"')[0]
        async with http.get(url.removesuffix("/chat") + script) as asset:
            assert asset.status == 200
        async with http.get(f"{url}/?token=launch") as entered:
            assert entered.url.path == "/chat/"
            assert {cookie["path"] for cookie in http.cookie_jar} == {"/chat", "/chat/api/login"}
        async with http.post(f"{url}/api/conversations", json={}) as made:
            id = (await made.json())["id"]
        async with http.post(f"{url}/api/conversations/{id}/turns", json={"text": "hi"}) as begun:
            turn = (await begun.json())["turn"]
        async with http.get(f"{url}/api/turns/{turn}/events") as events:
            assert "turn.end" in await events.text()
        async with http.post(f"{url}/api/links", json={}) as link:
            assert (await link.json())["path"].startswith("/chat/?token=")
        async with http.post(f"{url}/api/logout", json={}) as left:
            assert left.status == 204
        async with http.get(f"{url}/api/me") as me:
            assert me.status == 401


async def test_whoever_is_no_named_proxy_does_not_say_where_the_page_is(tmp_path: Path) -> None:
    """Text in the header of an untrusted proxy would become part of the web UI (U2)."""
    header = {"x-forwarded-prefix": "/elsewhere"}
    async with served(tmp_path, [says("x")]) as site:
        assert b"/elsewhere" not in (await site.ask("GET", "/", headers=header)).body
    async with served(tmp_path / "named", [says("x")], proxies=PROXY) as site:
        assert b"/elsewhere/assets" in (await site.ask("GET", "/", headers=header)).body
        for odd in ('/"><script>', "//evil.example", "/a/../b", "javascript:x", "/a b", "/é"):
            body = (await site.ask("GET", "/", headers={"x-forwarded-prefix": odd})).body
            assert b'"/assets/' in body, odd


async def test_what_watches_over_it_asks_at_the_root_all_the_same(tmp_path: Path) -> None:
    async with served(tmp_path, [says("x")], path="/chat") as site:
        for path in ("/healthz", "/chat/healthz"):
            assert (await site.ask("GET", path)).status == 200
        assert (await site.get("/chat/api/me"))["user"] == "local"
        assert (await site.ask("GET", "/chatter")).status == 404
        assert (await site.ask("GET", "/chat")).status == 200


@pytest.mark.parametrize("path", ["chat", "/chat/", "/", "/api", "/c", "/a//b", "/..", "/a b", "//x"])
def test_a_path_that_cannot_be_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="path"):
        TypeAdapter(ServerTable).validate_json(json.dumps({"path": path}))


def test_a_path_is_plain() -> None:
    assert [parse_path(text) for text in ("/a/b-c_1.x~", "/a/", "", "/", "/.", "a")] == [
        "/a/b-c_1.x~",
        "/a",
        None,
        None,
        None,
        None,
    ]
