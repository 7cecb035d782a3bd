"""Check which clients have access, from which addresses, with what, and to whose objects (U1–U3, P6)."""

from __future__ import annotations

import asyncio
import gzip
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from dragoman import tool
from dragoman.cli.commands.serve import serve
from dragoman.cli.flags.chat import ServeFlags
from dragoman.errors import ConfigError
from dragoman.server import problems
from dragoman.server.app import server
from dragoman.server.auth import Auth, key_hash, load_secret
from dragoman.server.middleware import Middleware, hostname
from dragoman.server.problems import without_paths
from dragoman.wire.http_client.network import is_loopback
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import runtime_with
from tests.server.site import SMALL, Site, listening, served

pytestmark = pytest.mark.slow

NOBODY: dict[str, Any] = {"authorization": ""}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def status(site: Site, method: str, path: str, body: Any = None, **headers: str) -> int:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return (await site.ask(method, path, body, headers=given)).status


async def test_the_launch_link_gives_a_cookie_that_scripts_and_other_sites_cannot_use(tmp_path: Path) -> None:
    """U1, U2"""
    async with served(tmp_path, [says("x")]) as site:
        answer = await site.ask("GET", "/?token=launch", headers=NOBODY)
        assert (answer.status, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "launch" not in cookie
        assert await status(site, "GET", "/api/me", authorization="", cookie=cookie.partition(";")[0]) == 200
        assert (await site.ask("GET", "/?token=wrong", headers=NOBODY)).status == 403


@pytest.mark.parametrize(
    "credentials",
    [
        {"authorization": ""},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic bGF1bmNo"},
        {"authorization": "", "cookie": "dragoman_x=abc.def"},
    ],
)
async def test_strangers_get_nothing(tmp_path: Path, credentials: dict[str, str]) -> None:
    """U1"""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        for method, path, body in (
            ("GET", "/api/me", None),
            ("GET", "/api/conversations", None),
            ("GET", f"/api/conversations/{id}/tree", None),
            ("GET", f"/api/events?conversation={id}", None),
            ("POST", f"/api/conversations/{id}/turns", {"text": "hi"}),
            ("POST", "/api/files", b"x"),
            ("DELETE", f"/api/conversations/{id}", None),
        ):
            kind = "application/octet-stream" if path == "/api/files" else "application/json"
            assert await status(site, method, path, body, content_type=kind, **credentials) == 401, path


async def test_a_cookie_that_was_changed_or_is_of_another_server_is_nobody(tmp_path: Path) -> None:
    """U2"""
    async with served(tmp_path, [says("x")]) as site:
        name, _, value = (await site.ask("GET", "/?token=launch")).headers["set-cookie"].partition("=")
        good = value.partition(";")[0].strip('"')
        for bad in (
            good[:-1] + ("0" if good[-1] != "0" else "1"),
            "x" + good,
            good.partition(".")[0] + ".",
            "",
        ):
            assert await status(site, "GET", "/api/me", authorization="", cookie=f"{name}={bad}") == 401
    (tmp_path / "secret").unlink()
    async with served(tmp_path, [says("x")]) as site:
        assert await status(site, "GET", "/api/me", authorization="", cookie=f"{name}={good}") == 401


async def test_a_sign_in_outlives_the_server(tmp_path: Path) -> None:
    """The web UI continues without a new sign-in after a restart (U2)."""
    async with served(tmp_path, [says("x")]) as site:
        cookie = (await site.ask("GET", "/?token=launch")).headers["set-cookie"].partition(";")[0]
    async with served(tmp_path, [says("x")]) as site:
        assert await status(site, "GET", "/api/me", authorization="", cookie=cookie) == 200
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "[::1",
        "a:b",
    ],
)
async def test_a_name_that_is_not_ours_is_refused(tmp_path: Path, host: str) -> None:
    """U2: a page that rebinds its name to this machine comes with its own name."""
    async with served(tmp_path, [says("x")]) as site:
        assert await status(site, "GET", "/api/me", host=host) in (400, 421)
        assert await status(site, "GET", "/", host=host) in (400, 421)


async def test_a_name_that_is_not_ours_is_refused_also_beside_one_that_is(tmp_path: Path) -> None:
    """U2"""
    async with served(tmp_path, [says("x")]) as site:
        reader, writer = await asyncio.open_connection(*site.url.removeprefix("http://").split(":"))
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert b" 421 " in await reader.readline()
        writer.close()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:80", "::1"),
        ("LOCALHOST", "localhost"),
        ("x/y", None),
        ("a:b", None),
    ],
)
def test_a_host_is_read_properly(host: str, name: str | None) -> None:
    """U2"""
    assert hostname(host) == name


OTHER_PAGES = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://["},
    {"origin": "https://127.0.0.1:1"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
]


async def test_other_pages_may_not_use_it(tmp_path: Path) -> None:
    """U2: not to act, and not to read."""
    async with served(tmp_path, [says("x")]) as site:
        for headers in OTHER_PAGES:
            assert await status(site, "POST", "/api/conversations", {}, **headers) == 403, headers
            assert await status(site, "GET", "/api/conversations", **headers) == 403, headers
        assert (await site.get("/api/conversations"))["items"] == []


async def test_a_page_that_the_settings_name_may_use_it_with_a_key_alone(tmp_path: Path) -> None:
    """U2: its browser asks beforehand. There a cookie counts for nothing, and other pages are not let in."""
    page = {"origin": "https://app.example", "sec_fetch_site": "cross-site"}
    async with served(tmp_path, [says("x")], origins=[page["origin"]]) as site:
        link = await site.ask("GET", "/?token=launch", headers=NOBODY)
        cookie = link.headers["set-cookie"].partition(";")[0]
        asked = {"origin": page["origin"], "access-control-request-method": "POST"}
        asked["access-control-request-headers"] = "authorization,content-type"
        allowed = await site.ask("OPTIONS", "/api/ai-sdk/chat", headers={**NOBODY, **asked})
        assert allowed.headers["access-control-allow-origin"] == page["origin"]
        assert "access-control-allow-credentials" not in allowed.headers
        assert await status(site, "POST", "/api/conversations", {}, **page) == 201
        assert await status(site, "GET", "/api/me", authorization="", cookie=cookie, **page) == 401
        assert await status(site, "GET", "/api/setup/providers", **page) == 403
        other = {**asked, "origin": "https://evil.example"}
        refused = await site.ask("OPTIONS", "/api/ai-sdk/chat", headers={**NOBODY, **other})
        assert "access-control-allow-origin" not in refused.headers
        assert await status(site, "GET", "/api/conversations", origin="https://evil.example") == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
async def test_only_json_changes_anything(tmp_path: Path, kind: str) -> None:
    """The server refuses content types that a form can send without a preflight request (U2)."""
    async with served(tmp_path, [says("x")]) as site:
        assert await status(site, "POST", "/api/conversations", {}, content_type=kind) == 415
        assert (await site.get("/api/conversations"))["items"] == []


async def test_a_packed_body_is_refused_in_words(tmp_path: Path) -> None:
    """Otherwise a file would be stored compressed, under the type of its content (U2)."""
    packed = {"content_encoding": "gzip"}
    async with served(tmp_path, [says("x")]) as site:
        for path, kind in (
            ("/api/conversations", "application/json"),
            ("/v1/chat/completions", "application/json"),
            ("/api/files", "application/octet-stream"),
        ):
            assert await status(site, "POST", path, gzip.compress(b"{}"), content_type=kind, **packed) == 415
        assert await status(site, "POST", "/api/conversations", {}, content_encoding="identity") == 201
        assert await status(site, "GET", "/api/conversations", **packed) == 200


async def test_a_body_that_is_no_text_says_so(tmp_path: Path) -> None:
    """U2, F3: as it is where a client writes JSON in another encoding than UTF-8."""
    async with served(tmp_path, [says("x")]) as site:
        for path in ("/api/conversations", "/v1/chat/completions"):
            answer = await site.ask("POST", path, '{"title": "Grüße"}'.encode("latin-1"))
            assert (answer.status, "not valid UTF-8" in str(answer.body)) == (400, True)


async def test_what_is_too_large_or_malformed_is_refused(tmp_path: Path) -> None:
    """U2"""
    async with served(tmp_path, [says("x")]) as site:
        raw = {"content_type": "application/octet-stream"}
        assert await status(site, "POST", "/api/files", b"x" * (SMALL + 1), **raw) == 413
        assert await status(site, "POST", "/api/files", b"", **raw) == 422
        assert await status(site, "POST", "/api/conversations", b"{" * 100) == 422
        assert await status(site, "POST", "/api/conversations", b'{"title": 5}') == 422
        assert await status(site, "POST", "/api/conversations", b"[" * 100_000) in (400, 422)
        assert await status(site, "POST", "/api/conversations", b"x" * 3_000_000) == 413
        assert await status(site, "POST", "/api/conversations", b'{"a": "\xff"}') in (400, 422)
        assert await status(site, "GET", "/api/files/../../secret") == 404
        assert await status(site, "GET", "/assets/../app.py") == 404


async def test_a_body_that_does_not_say_its_length_is_cut_off(tmp_path: Path) -> None:
    """U2"""

    async def chunks() -> Any:
        for _ in range(SMALL // 1000 + 2):
            yield b"x" * 1000

    async with served(tmp_path, [says("x")]) as site:
        headers = {"authorization": "Bearer key of local", "content-type": "application/octet-stream"}
        async with site.http.post(f"{site.url}/api/files", data=chunks(), headers=headers) as response:
            assert response.status == 413


def ways_in(id: str, message: str, turn: str, call: str, question: str) -> list[tuple[str, str, Any]]:
    """Every route that names something of a conversation."""
    return [
        ("GET", f"/api/conversations/{id}", None),
        ("PATCH", f"/api/conversations/{id}", {"title": "x"}),
        ("DELETE", f"/api/conversations/{id}", None),
        ("GET", f"/api/conversations/{id}/tree", None),
        ("GET", f"/api/conversations/{id}/events", None),
        ("GET", f"/api/events?conversation={id}", None),
        ("GET", f"/api/conversations/{id}/export", None),
        ("GET", f"/api/conversations/{id}/raw", None),
        ("GET", f"/api/conversations/{id}/queue", None),
        ("PUT", f"/api/conversations/{id}/queue", {"turns": []}),
        ("POST", f"/api/conversations/{id}/fork", {"message": message}),
        ("POST", f"/api/conversations/{id}/turns", {"text": "hi"}),
        ("GET", f"/api/tools?conversation={id}", None),
        ("POST", f"/api/messages/{message}/edit", {"text": "x"}),
        ("POST", f"/api/messages/{message}/rerun", {}),
        ("GET", f"/api/turns/{turn}", None),
        ("PATCH", f"/api/turns/{turn}", {"text": "x"}),
        ("GET", f"/api/turns/{turn}/facts", None),
        ("GET", f"/api/turns/{turn}/context", None),
        ("GET", f"/api/turns/{turn}/trace", None),
        ("PUT", f"/api/turns/{turn}/rating", {"value": "good"}),
        ("DELETE", f"/api/turns/{turn}/rating", None),
        ("GET", f"/api/conversations/{id}/ratings", None),
        ("GET", f"/api/turns/{turn}/sound", None),
        ("POST", f"/api/turns/{turn}/continue", {}),
        ("DELETE", f"/api/turns/{turn}/steering/1", None),
        ("GET", f"/api/turns/{turn}/events", None),
        ("GET", f"/api/turns/{turn}/diff", None),
        ("GET", f"/api/messages/{message}/diff", None),
        ("GET", f"/api/calls/{call}/diff", None),
        ("GET", f"/api/conversations/{id}/diff", None),
        ("POST", f"/api/turns/{turn}/revert", {}),
        ("POST", f"/api/messages/{message}/revert", {}),
        ("POST", f"/api/calls/{call}/revert", {}),
        ("POST", f"/api/conversations/{id}/redo", {}),
        ("POST", f"/api/turns/{turn}/cancel", {}),
        ("POST", f"/api/turns/{turn}/steer", {"text": "x"}),
        ("GET", f"/api/calls/{call}", None),
        ("GET", f"/api/calls/{call}/output", None),
        ("POST", f"/api/calls/{call}/rerun", {}),
        ("POST", f"/api/calls/{call}/result", {"text": "x"}),
        ("GET", f"/api/questions?conversation={id}", None),
        ("GET", f"/api/questions/{question}", None),
        ("POST", f"/api/questions/{question}/answer", {"verdict": "allow"}),
        ("POST", f"/api/questions/{question}/hunks", {"hunks": []}),
        ("GET", f"/api/rules/decision?permission=add&conversation={id}", None),
        ("GET", f"/api/rules/covered?rule=add:*&question={question}", None),
    ]


async def test_nobody_sees_or_touches_what_is_somebody_elses(tmp_path: Path) -> None:
    """U2, P6: and it looks as if it were not there."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add], allow=[]) as site:
        for name in ("ada", "bob"):
            await site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
        ada = Site(site.url, site.runtime, site.auth, site.http, key="key of ada")
        bob = Site(site.url, site.runtime, site.auth, site.http, key="key of bob")
        id = await ada.conversation()
        turn = await ada.say("go", id)
        question = await ada.question()
        tree = await ada.get(f"/api/conversations/{id}/tree")
        message, call = tree["messages"][0]["id"], question["call"]
        assert (await bob.get("/api/me"))["user"] == "bob"
        for method, path, body in ways_in(id, message, turn, call, question["id"]):
            for stranger in (bob, site):
                assert (await stranger.ask(method, path, body)).status == 404, (method, path)
        assert (await bob.get("/api/questions"))["items"] == []
        assert (await bob.get("/api/conversations"))["items"] == []
        await ada.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow", "scope": "always"})
        (grant,) = (await ada.get("/api/grants"))["items"]
        assert (await bob.ask("DELETE", f"/api/grants/{grant['id']}")).status == 404


async def test_an_old_link_does_not_lock_out_who_is_in(tmp_path: Path) -> None:
    """U1"""
    async with served(tmp_path, [says("x")]) as site:
        cookie = (await site.ask("GET", "/?token=launch")).headers["set-cookie"].partition(";")[0]
        answer = await site.ask("GET", "/c/conv_1?token=old", headers={"authorization": "", "cookie": cookie})
        assert (answer.status, answer.headers["location"]) == (303, "/c/conv_1")


async def test_of_strangers_no_body_is_read(tmp_path: Path) -> None:
    """U2: the answer comes before the body does."""
    async with served(tmp_path, [says("x")]) as site:
        host = site.url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"POST /api/import HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 40000000\r\n\r\n[".encode())
        async with asyncio.timeout(PATIENCE):
            assert b" 401 " in await reader.readline()
        writer.close()


async def test_the_metrics_are_for_the_admin(tmp_path: Path) -> None:
    """U1: whether the server lives is for everybody."""
    async with served(tmp_path, []) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        for key, status in (("Bearer key of local", 200), ("Bearer key of ada", 403), ("", 401)):
            answer = await site.ask("GET", "/metrics", headers={"authorization": key})
            assert answer.status == status
            assert ("# TYPE dragoman_" in str(answer.body)) is (status == 200)
            alive = await site.ask("GET", "/healthz", headers={"authorization": key})
            assert alive.body == {"status": "alive"}
            assert (await site.ask("GET", "/readyz", headers={"authorization": key})).body == {
                "status": "ready"
            }


async def test_what_comes_after_a_body_is_no_header(tmp_path: Path) -> None:
    """U2: a proxy that checks or sets headers does not look there."""
    async with served(tmp_path, [says("x")]) as site:
        host = site.url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        head = f"POST /api/conversations HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        trailer = f"Authorization: Bearer {site.key}\r\n\r\n"
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{trailer}".encode())
        async with asyncio.timeout(PATIENCE):
            assert b" 401 " in await reader.readline()
        writer.close()


async def test_who_is_removed_or_whose_password_changed_is_out(tmp_path: Path) -> None:
    """U2"""
    async with served(tmp_path, [says("x")], password="old") as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        cookies = []
        for password in ("key of ada", "old"):
            answer = await site.ask("POST", "/api/login", {"password": password}, headers=NOBODY)
            cookies.append(answer.headers["set-cookie"].partition(";")[0])
            assert await status(site, "GET", "/api/me", authorization="", cookie=cookies[-1]) == 200
        await site.runtime.store.remove_person("ada")
        assert await status(site, "GET", "/api/me", authorization="", cookie=cookies[0]) == 401
    async with served(tmp_path, [says("x")], password="new") as site:
        assert await status(site, "GET", "/api/me", authorization="", cookie=cookies[1]) == 401


async def test_a_live_stream_ends_when_the_key_it_was_opened_with_is_taken_back(tmp_path: Path) -> None:
    """A stream is long-lived, and a thief of the key would otherwise continue to read (U2)."""
    async with runtime_with(tmp_path, [says("to the old key"), says("to the new key")]) as runtime:
        auth = Auth(runtime.store, load_secret(tmp_path / "secret"), key="key of local")
        whole = server(runtime, auth, upload_limit=SMALL)
        app = Middleware(whole, auth=auth, upload_limit=SMALL, look_again=0)
        await runtime.store.add_person("ada", key_hash("old"), 1.0)
        async with listening(app) as url, aiohttp.ClientSession() as http, asyncio.timeout(PATIENCE):
            found, ada = (Site(url, runtime, auth, http, key=key) for key in ("old", "new"))
            id = await found.conversation()
            async with found.events(f"/api/conversations/{id}/events") as events:
                heard = [await anext(events)]  # otherwise the turn can end before the snapshot is taken
                await found.say("hello", id)
                while heard[-1].type != "turn.end":
                    heard.append(await anext(events))
                await runtime.store.remove_person("ada")
                await runtime.store.add_person("ada", key_hash("new"), 2.0, restore=True)
                await ada.say("hello again", id)
                rest = [event async for event in events]
            assert "to the old key" in str(heard)
            assert "again" not in str(rest)
            assert (await ada.ask("GET", f"/api/conversations/{id}/tree")).status == 200
        whole.state.context.publisher.close()


async def test_a_file_that_was_asked_for_comes_whole(tmp_path: Path) -> None:
    """A download ends without being cut off, and no server must promise a length and send less (U2)."""
    async with runtime_with(tmp_path, []) as runtime:
        auth = Auth(runtime.store, load_secret(tmp_path / "secret"), key="key of local")
        await runtime.store.add_person("ada", key_hash("old"), 1.0)

        async def file(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            await runtime.store.remove_person("ada")
            await send({"type": "http.response.body", "body": b"b", "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        app = Middleware(file, auth=auth, upload_limit=SMALL, look_again=0)
        async with listening(app) as url, aiohttp.ClientSession() as http:
            key = {"authorization": "Bearer old"}
            async with asyncio.timeout(PATIENCE), http.get(f"{url}/api/files/x", headers=key) as got:
                assert await got.read() == b"ab"


async def test_guessing_many_at_once_keeps_nobody_else_out(tmp_path: Path) -> None:
    """U1"""
    async with served(tmp_path, [says("x")], password="open sesame") as site:
        wrong = [
            asyncio.create_task(status(site, "POST", "/api/login", {"password": f"{n}"}, authorization=""))
            for n in range(12)
        ]
        assert (await site.ask("GET", "/?token=launch", headers=NOBODY)).status == 303
        answers = [await task for task in wrong]
        assert sorted(set(answers)) == [401, 429]
        assert (await site.ask("GET", "/?token=open+sesame", headers=NOBODY)).status == 403


@pytest.mark.parametrize("body", [b'{"text": "\\ud800"}', b'{"text": "x", "options": {"a": "\\ud800"}}'])
async def test_half_a_character_is_refused(tmp_path: Path, body: bytes) -> None:
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        assert await status(site, "POST", f"/api/conversations/{id}/turns", body) == 422


async def test_a_password_signs_in_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    """U1"""
    async with served(tmp_path, [says("x")], password="open sesame") as site:
        good = await site.ask("POST", "/api/login", {"password": "open sesame"}, headers=NOBODY)
        cookie = good.headers["set-cookie"].partition(";")[0]
        assert await status(site, "GET", "/api/me", authorization="", cookie=cookie) == 200
        began = time.monotonic()
        assert await status(site, "POST", "/api/login", {"password": "guess"}, authorization="") == 401
        assert time.monotonic() - began >= 1  # a wrong one takes a second
        out = await site.ask("POST", "/api/logout", {}, headers={"cookie": cookie})
        assert "Max-Age=0" in out.headers["set-cookie"]


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("example.org", False),
    ],
)
def test_what_can_be_reached_from_outside_is_known(host: str, here: bool) -> None:
    """U1"""
    assert is_loopback(host) is here


async def test_pages_and_frames_come_with_headers_that_keep_them_apart(tmp_path: Path) -> None:
    """U3, U4"""
    async with served(tmp_path, [says("x")]) as site:
        page = await site.ask("GET", "/")
        frame = await site.ask("GET", "/sandbox")
        assert (page.status, frame.status) == (200, 200), "the page is not built: run `make page`"
        assert "script-src 'self';" in page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert frame.headers["content-security-policy"].startswith("sandbox allow-scripts;")
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"


def test_an_error_does_not_tell_where_the_server_keeps_things() -> None:
    """U2"""
    assert without_paths("/srv/chat/x/dragoman.toml, line 3: bad") == "dragoman.toml, line 3: bad"
    assert without_paths("cannot open /var/lib/chat.db: no") == "cannot open chat.db: no"
    assert without_paths("see https://example.org/a/b/c") == "see https://example.org/a/b/c"


async def test_an_unexpected_error_is_told_by_number_alone() -> None:
    """U2: the key and the path stay in the server's log."""
    app = FastAPI()
    problems.install(app)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the key is sk-123 in /srv/chat/keys")

    async with listening(app) as url, aiohttp.ClientSession() as http, http.get(f"{url}/broken") as response:
        text = await response.text()
        assert response.status == 500
        assert "err_" in text
        assert "sk-123" not in text
        assert "srv" not in text


def test_a_secret_file_that_is_damaged_is_not_used(tmp_path: Path) -> None:
    """A missing secret file is created, with its folder, and kept (U2)."""
    made = load_secret(tmp_path / "new" / "secret")
    assert load_secret(tmp_path / "new" / "secret") == made
    (tmp_path / "secret").write_bytes(b"short")
    with pytest.raises(ConfigError, match="Delete it"):
        load_secret(tmp_path / "secret")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_a_public_address_is_refused_without_a_password(tmp_path: Path, host: str) -> None:
    """U1: before anything listens."""
    (tmp_path / "dragoman.toml").write_text('store = "chat.db"', "utf-8")
    with pytest.raises(ConfigError, match="set a password first"):
        await serve(ServeFlags(host=host, config=tmp_path / "dragoman.toml"))
    assert not (tmp_path / "chat.db").exists()
