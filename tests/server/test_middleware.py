"""Which requests reach the application, by host, origin, type and length, and whose address they have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from dragoman.errors import ConfigError
from dragoman.server.links import LinkOwner, Links
from dragoman.server.middleware import IMPORT_LIMIT, JSON_LIMIT, Middleware
from dragoman.server.proxies import Proxies, counted_address, put_below
from dragoman.server.routes.oidc import LOGOUT

UPLOADS = 900
JSON = {"content-type": "application/json"}
HERE, GOOD = "http://localhost", "http://good.example"


@dataclass
class Seen:
    """The answer, and the scope in which the application was called, if it was."""

    status: int
    headers: dict[str, str]
    scope: Scope | None


async def ask(
    to: str = "/api/x",
    method: str = "GET",
    *,
    headers: dict[str, str] | None = None,
    body: Sequence[bytes] = (b"",),
    scheme: str = "http",
    root: str = "",
    **options: Any,
) -> Seen:
    """Send a request through the middleware, without a server."""
    pieces = [
        {"type": "http.request", "body": one, "more_body": place < len(body) - 1}
        for place, one in enumerate(body)
    ]
    sent: list[Message] = []
    reached: list[Scope] = []

    async def receive() -> Message:
        return pieces.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope)
        status = 200
        try:
            while (await receive())["more_body"]:
                pass
        except HTTPException as error:
            status = error.status_code
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    scope: Scope = {
        "type": "http",
        "method": method,
        "path": to,
        "root_path": root,
        "scheme": scheme,
        "headers": [
            (name.encode(), value.encode())
            for name, value in {"host": "localhost", **(headers or {})}.items()
        ],
    }
    options = {"upload_limit": UPLOADS, "origins": {GOOD}, **options}
    await Middleware(app, **options)(scope, receive, send)
    start = sent[0]
    shown = {name.decode(): value.decode() for name, value in start["headers"]}
    return Seen(start["status"], shown, reached[0] if reached else None)


@pytest.mark.parametrize(
    ("status", "path", "method", "headers"),
    [
        (200, "/api/x", "GET", {}),
        *(
            (200 if here else 421, "/api/x", "GET", {"host": host})
            for host, here in {
                **{"127.0.0.1:8000": True, "[::1]:80": True, "LOCALHOST": True, "": False, "evil": False},
                **{"localhost:x": False, "a@localhost": False, "localhost/x": False, "localhost?x": False},
            }.items()
        ),
        (200, "/healthz", "GET", {"host": "10.0.0.7"}),
        (421, "/healthz/x", "GET", {"host": "10.0.0.7"}),
        (400, "/api/x", "GET", {"content-length": "-1"}),
        # pages of other origins
        (200, "/api/x", "GET", {"origin": HERE}),
        (200, "/api/x", "GET", {"origin": f"{HERE}:80"}),
        *(
            (403, "/api/x", "GET", {"origin": origin})
            for origin in (f"{HERE}:81", f"{HERE}:x", "https://localhost", "http://evil", "null", "")
        ),
        (403, "/v1/models", "GET", {"origin": "http://evil"}),
        (200, "/c/1", "GET", {"origin": "http://evil"}),
        (200, "/api/x", "GET", {"origin": GOOD, "sec-fetch-site": "cross-site"}),
        (403, "/api/setup/x", "GET", {"origin": GOOD}),
        (200, "/api/setup/x", "GET", {"origin": HERE}),
        (200, "/api/x", "GET", {"sec-fetch-site": "none"}),
        (200, "/api/x", "GET", {"sec-fetch-site": "same-origin"}),
        (403, "/api/x", "GET", {"sec-fetch-site": "same-site"}),
        # types of bodies
        *((415, "/api/x", method, {"content-length": "2"}) for method in ("POST", "PUT", "PATCH", "DELETE")),
        (200, "/api/x", "GET", {"content-length": "2"}),
        (200, "/api/x", "POST", {"content-length": "0"}),
        (200, "/api/x", "POST", {}),
        (415, "/api/x", "POST", {"transfer-encoding": "chunked"}),
        (200, "/api/x", "POST", {"content-length": "2", "content-type": "Application/JSON ; charset=utf-8"}),
        (200, "/api/files", "POST", {"content-length": "2", "content-type": "application/octet-stream"}),
        (415, "/api/files", "POST", {"content-length": "2", **JSON}),
        (
            200,
            "/v1/files",
            "POST",
            {"content-length": "2", "content-type": "multipart/form-data; boundary=x"},
        ),
        (200, "/api/x", "POST", {"content-length": "2", **JSON, "content-encoding": "Identity"}),
        (415, "/api/x", "POST", {"content-length": "2", **JSON, "content-encoding": "gzip"}),
        (415, "/api/x", "GET", {"content-length": "2", "content-encoding": "gzip"}),
        (200, "/api/x", "GET", {"content-encoding": "gzip"}),
    ],
)
async def test_a_request_reaches_the_application_or_is_refused(
    status: int, path: str, method: str, headers: dict[str, str]
) -> None:
    seen = await ask(path, method, headers=headers)
    assert (seen.status, seen.scope is not None) == (status, status == 200)
    if seen.scope is not None:
        assert seen.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/api/files", UPLOADS),
        ("/api/login", 10_000),
        (LOGOUT, 10_000),
        ("/api/conversations", JSON_LIMIT),
        ("/v1/responses", JSON_LIMIT + 1200),
        ("/api/import", IMPORT_LIMIT),
        ("/mcp", IMPORT_LIMIT),
        ("/api/ai-sdk/chat", IMPORT_LIMIT),
        ("/api/ag-ui/agent", IMPORT_LIMIT),
    ],
)
async def test_a_body_is_as_long_as_its_path_allows(path: str, most: int) -> None:
    """Whether or not its header says how long it is."""
    kind = "application/octet-stream" if path == "/api/files" else "application/json"
    for size, status in ((most, 200), (most + 1, 413)):
        typed = {"content-type": kind}
        seen = await ask(path, "POST", headers={**typed, "content-length": f"{size}"})
        assert (seen.status, seen.scope is None) == (status, status == 413)
        if most < 1_000_000:
            chunked = {**typed, "transfer-encoding": "chunked"}
            body = [bytes(most - 10), bytes(10), bytes(size - most)]
            assert (await ask(path, "POST", headers=chunked, body=body)).status == status
    assert (await ask(f"/chat{path}", root="/chat", headers={"content-length": f"{most + 1}"})).status == 413


async def test_a_page_of_another_origin_brings_no_cookie() -> None:
    for origin, kept in ((GOOD, False), (HERE, True)):
        seen = await ask(headers={"origin": origin, "cookie": "a=b"})
        assert seen.scope is not None
        assert (b"cookie" in dict(seen.scope["headers"])) is kept


async def test_a_request_over_https_is_of_a_page_over_https() -> None:
    for origin, status in (("https://localhost:443", 200), ("https://localhost", 200), (HERE, 403)):
        assert (await ask(scheme="https", headers={"origin": origin})).status == status


@pytest.mark.parametrize(
    ("path", "below"),
    [("/x", "/chat/x"), ("/chat/x", "/chat/x"), ("/chat", "/chat/"), ("/chats", "/chat/chats")],
)
async def test_a_path_is_below_its_prefix_whether_or_not_the_proxy_takes_it_off(
    path: str, below: str
) -> None:
    seen = await ask(path, path="/chat")
    assert seen.scope is not None
    assert (seen.scope["path"], seen.scope["root_path"]) == (below, "/chat")
    scope: Scope = {"path": path, "raw_path": path.encode()}
    put_below(scope, "/chat")
    assert scope["raw_path"].decode().rstrip("/") == below.rstrip("/")


TRUSTED = Proxies(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", ["192.0.2.9, 192.0.2.1, 10.0.0.2"], "192.0.2.1"),
        ("10.0.0.1", ["192.0.2.9", "192.0.2.1,10.0.0.2"], "192.0.2.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["192.0.2.1:5000"], "192.0.2.1"),
        ("::1", ["[2001:db8::1]:5000"], "2001:db8::1"),
        ("::1", ["::ffff:192.0.2.1"], "192.0.2.1"),
        ("::1", ["fe80::1%eth0"], "fe80::1"),
        ("::1", [], "::1"),
        ("192.0.2.7", ["192.0.2.1"], "192.0.2.7"),
        ("unix", ["192.0.2.1"], "unix"),
    ],
)
def test_the_address_of_a_client_is_the_last_that_is_no_proxy(
    peer: str, forwarded: list[str], client: str
) -> None:
    headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    scope: Scope = {"type": "http", "client": (peer, 1), "headers": headers, "path": "/", "scheme": "http"}
    TRUSTED.resolve(scope)
    assert scope["client"][0] == client
    assert (scope["scheme"], scope["path"]) == ("http", "/")


@pytest.mark.parametrize(
    ("name", "value", "scheme", "path"),
    [
        ("x-forwarded-proto", "https", "https", "/x"),
        ("x-forwarded-proto", "http, HTTPS ", "https", "/x"),
        ("x-forwarded-proto", "https, ftp", "http", "/x"),
        ("x-forwarded-prefix", "/other, /chat/ ", "http", "/chat/x"),
        ("x-forwarded-prefix", "/chat, /a b", "http", "/x"),
    ],
)
def test_a_proxy_tells_the_scheme_and_the_prefix(name: str, value: str, scheme: str, path: str) -> None:
    headers = [(name.encode(), value.encode())]
    for peer, trusted in (("10.0.0.1", True), ("192.0.2.1", False)):
        scope: Scope = {
            "type": "http",
            "client": (peer, 1),
            "headers": headers,
            "path": "/x",
            "scheme": "http",
        }
        TRUSTED.resolve(scope)
        assert (scope["scheme"], scope["path"]) == ((scheme, path) if trusted else ("http", "/x"))
    mounted: Scope = {**scope, "client": ("10.0.0.1", 1), "root_path": "/mine"}
    TRUSTED.resolve(mounted)
    assert (mounted["path"], mounted["root_path"]) == ("/x", "/mine")


def test_a_proxy_that_nobody_named_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    proxies = Proxies()
    scope: Scope = {"type": "http", "client": None, "headers": []}
    proxies.resolve(scope)
    assert caplog.records == []
    scope["headers"] = [(b"x-forwarded-for", b"192.0.2.1")]
    for _ in range(2):
        proxies.resolve(scope)
    assert len(caplog.records) == 1
    with pytest.raises(ConfigError, match="is not an address"):
        Proxies(["proxy.example"])


def test_addresses_of_a_household_are_counted_as_one() -> None:
    counted = [counted_address(f"2001:db8:0:{net}::{host}") for net, host in ((1, 1), (1, 2), (2, 1))]
    assert counted == ["2001:db8:0:1::/64"] * 2 + ["2001:db8:0:2::/64"]
    assert [counted_address(one) for one in ("192.0.2.1", "::ffff:192.0.2.1", "x")] == ["192.0.2.1"] * 2 + [
        "x"
    ]


def test_a_link_is_for_one_use_and_for_its_time() -> None:
    """U1: the oldest of too many links is dropped."""
    now = 0.0
    links = Links(lambda: now)
    first, brief = links.add("ada"), links.add("ada", key="hash", lifetime=10.0)
    now = 9.9
    assert links.owner(brief) == LinkOwner("ada", "hash")
    now = 10.0
    assert (links.owner(brief), links.use(brief)) == (None, None)
    assert (links.owner(first), links.use(first), links.use(first)) == (
        LinkOwner("ada"),
        LinkOwner("ada"),
        None,
    )
    tokens = [links.add(f"{number}") for number in range(101)]
    assert [links.owner(token) is not None for token in tokens] == [False] + [True] * 100


@pytest.mark.parametrize("begun", [False, True])
async def test_a_request_that_a_stopping_server_gives_up_is_told_to_come_again(begun: bool) -> None:
    """U1: unless its answer has begun."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise asyncio.CancelledError

    scope: Scope = {"type": "http", "method": "GET", "path": "/api/x", "scheme": "http"}
    scope["headers"] = [(b"host", b"localhost")]
    with pytest.raises(asyncio.CancelledError) if begun else nullcontext():
        await Middleware(app, upload_limit=1)(scope, receive, send)
    assert sent[0]["status"] == (200 if begun else 503)
    assert ((b"retry-after", b"1") in sent[0]["headers"]) is not begun
