"""`fetch_url`: pages over real HTTP, and every way into our own network that there is a trick for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.message import CallState
from dragoman.tools.builtin import web_group
from dragoman.tools.builtin.fetch_url import fetch_url, fetcher, text_of
from dragoman.tools.tool import Tool
from dragoman.wire.http_client.network import is_public
from dragoman.wire.scripted import calls, says
from tests.runtimes import only_call, play
from tests.tools.bench import Bench, run

pytestmark = pytest.mark.slow

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# ── a web of its own ──────────────────────────────────────────────────────────────────────────────


class Names(AbstractResolver):
    """A resolver that knows these names and gives prepared answers for each, in order."""

    def __init__(self, names: dict[str, list[str]]) -> None:
        self.names = names

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host not in self.names:
            raise OSError(f"there is no {host}")
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in self.names[host]
        ]

    async def close(self) -> None:
        pass


class Site:
    """A server on the loopback address that anybody may reach by the name site.test."""

    def __init__(self, server: TestServer) -> None:
        self.asked: list[str] = []
        self.url = f"http://site.test:{server.port}"
        names = {name: ["127.0.0.1"] for name in ("site.test", "www.site.test", "other.test")}
        self.fetch = fetcher(
            resolver=lambda: Names(names),
            reachable=lambda address: address == "127.0.0.1",
            seconds=2,
            largest=100_000,
        )


@asynccontextmanager
async def site(**pages: Handler) -> AsyncIterator[Site]:
    async def answer(request: web.Request) -> web.StreamResponse:
        found.asked.append(f"{request.host.partition(':')[0]}{request.path_qs}")
        return await pages[request.path.strip("/") or "index"](request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app)
    await server.start_server()
    found = Site(server)
    try:
        yield found
    finally:
        await server.close()


def page(body: str | bytes, type: str = "text/html", status: int = 200, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        data = body.encode() if isinstance(body, str) else body
        return web.Response(body=data, status=status, headers={"Content-Type": type, **headers})

    return handler


def moved(there: str, status: int = 302) -> Handler:
    return page("", status=status, Location=there)


async def failure(tool: Tool, url: str) -> str:
    outcome = await run(tool, url=url)
    assert outcome.state is CallState.FAILED
    return outcome.result.text


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────

HTML = """<!doctype html><html><head><title>Of
 dragons</title><style>p { color: red }</style><script>alert("<p>no</p>")</script></head>
<body><h1>Dragons</h1><p>They are <b>green</b> &amp; old.</p><ul><li>Smaug<li>Fafnir</ul>
<svg><title>no</title><text>no</text></svg><pre>  a
  b</pre><table><tr><td>1</td><td>2</td></tr></table><p>End"""


async def test_a_page_is_told_as_its_words() -> None:
    async with site(index=page(HTML)) as found:
        result = (await run(found.fetch, url=found.url)).result
    assert result.text == "Dragons\n\nThey are green & old.\n\n- Smaug\n- Fafnir\n\na\nb\n\n1 2\n\nEnd"
    assert (result.title, result.metadata["type"]) == ("Of dragons", "text/html")
    assert text_of("No tags <title>yet") == ("yet", "No tags")


# Each of these codecs changes the text, cannot decode with replacements, or takes quadratic time.
PYTHONS_OWN = ("punycode", "PunyCode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "base64")


@pytest.mark.parametrize(
    ("body", "type", "text"),
    [
        ("<b>as it is</b>", "text/plain", "<b>as it is</b>"),
        ('{"a": 1}', "application/json", '{"a": 1}'),
        ("<a/>", "application/atom+xml", "<a/>"),
        ("né".encode("latin-1"), "text/plain; charset=latin-1", "né"),
        ("né", "text/plain; charset=nonsense", "né"),
        *((r"n\xe9-a", f"text/plain; charset={name}", r"n\xe9-a") for name in PYTHONS_OWN),
        (b"n\xe9", "text/plain", "n\ufffd"),
        ("<p></p>", "text/html", "The page has no text."),
    ],
)
async def test_what_is_text_is_read(body: str | bytes, type: str, text: str) -> None:
    async with site(index=page(body, type)) as found:
        assert (await run(found.fetch, url=found.url)).result.text == text


@pytest.mark.parametrize("type", ["image/png", "application/pdf", "application/octet-stream", "video/mp4"])
async def test_what_is_not_text_is_refused(type: str) -> None:
    async with site(index=page(b"\x89PNG", type)) as found:
        assert f"is {type}, not text" in await failure(found.fetch, found.url)


async def test_an_error_of_the_server_is_told() -> None:
    async with site(index=page("gone", status=404)) as found:
        assert "answered 404 Not Found" in await failure(found.fetch, found.url)


async def test_a_site_that_is_not_there_is_told_in_the_systems_words() -> None:
    """C7: without those of the library that could not connect to it."""
    fetch = fetcher(resolver=lambda: Names({}))
    said = await failure(fetch, "https://nowhere.test/a")
    assert said == "nowhere.test could not be read: there is no nowhere.test"


async def test_a_page_without_end_is_read_as_far_as_the_limit() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async with site(index=endless) as found:
        text = (await run(found.fetch, url=found.url)).result.text
    assert text.startswith("x" * 100_000 + "\n[… the page continues")


async def test_a_page_that_does_not_come_is_not_waited_for() -> None:
    async def waits(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async with site(index=waits) as found:
        tool = fetcher(resolver=lambda: Names({"site.test": ["127.0.0.1"]}), reachable=bool, seconds=0.2)
        assert "took longer than 0.2 s" in await failure(tool, found.url)


# ── redirects ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_on_the_same_site_is_followed(status: int) -> None:
    async with site(index=moved("/there?a=1", status), there=page("here", "text/plain")) as found:
        result = (await run(found.fetch, url=found.url)).result
    assert result.text == "here"
    assert result.metadata["url"] == f"{found.url}/there?a=1"


async def test_a_redirect_on_the_same_site_is_judged_before_it_is_followed() -> None:
    """P9: each new path once, also where a rule allows the first."""
    pages = {"index": moved("/a"), "a": moved("/a?again")}
    async with site(**pages) as found:
        bench = Bench(permits=lambda pattern: False)
        outcome = await bench.run(found.fetch, {"url": found.url})
        assert outcome.state is CallState.FAILED
        assert bench.required == [f"{found.url.removeprefix('http://')}/a"]
        assert found.asked == ["site.test/"]
        bench = Bench()
        await bench.run(found.fetch, {"url": found.url})
        assert bench.required == [f"{found.url.removeprefix('http://')}/a"]


async def test_a_redirect_to_www_is_the_same_site() -> None:
    async with site(index=page("here", "text/plain")) as found:
        there = found.url.replace("site", "www.site")
        async with site(index=moved(there)) as first:
            assert "another site" in await failure(first.fetch, first.url)  # another port is another site
        found.asked.clear()
        assert (await run(found.fetch, url=there)).result.text == "here"


async def test_another_site_is_not_followed_but_named_so_that_the_rules_are_asked_about_it() -> None:
    async with site(index=moved("http://other.test/page")) as found:
        assert "another site. To follow it, fetch http://other.test/page" in await failure(
            found.fetch, found.url
        )
    assert found.asked == ["site.test/"]


async def test_an_open_address_written_as_a_number_is_another_site_too() -> None:
    async with site(index=moved("http://1.1.1.1/")) as found:
        tool = fetcher(resolver=lambda: Names({"site.test": ["127.0.0.1"]}), reachable=bool, seconds=2)
        assert "another site. To follow it, fetch http://1.1.1.1/" in await failure(tool, found.url)


async def test_redirects_without_end_are_given_up() -> None:
    async with site(index=moved("/")) as found:
        assert "without end" in await failure(found.fetch, found.url)
    assert len(found.asked) == 6


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ("http://127.0.0.2/", "not on the open internet"),
        ("http://169.254.169.254/latest/meta-data/", "not on the open internet"),
        ("http://[::1]/", "not on the open internet"),
        ("//10.0.0.1/", "not on the open internet"),
        ("http://2130706433/", "not on the open internet"),
        ("http://0x7f.0.0.1/", "not on the open internet"),
        ("http://localhost/", "another site"),
        ("http://1.1.1.1/", "not on the open internet"),  # refused because of the settings of this test
        ("file:///etc/passwd", "Use http:// or https://"),
        ("gopher://site.test/", "Use http:// or https://"),
        ("http://me:secret@site.test/", "user name or password"),
        ("http://[", "could not be read"),
    ],
)
async def test_a_redirect_into_our_own_network_is_refused(there: str, says: str) -> None:
    async with site(index=moved(there)) as found:
        assert says in await failure(found.fetch, found.url)
    assert found.asked == ["site.test/"]


# ── tricks ────────────────────────────────────────────────────────────────────────────────────────

TRICKS = {
    "loopback": "http://127.0.0.1/",
    "another loopback": "http://127.8.8.8/",
    "decimal": "http://2130706433/",
    "octal": "http://0177.0.0.1/",
    "hexadecimal": "http://0x7f000001/",
    "hexadecimal parts": "http://0x7f.0x0.0x0.0x1/",
    "short": "http://127.1/",
    "zero": "http://0/",
    "this host": "http://0.0.0.0/",
    "wide digits": "http://１２７.0.0.1/",
    "circled digits": "http://①②⑦.⓪.⓪.①/",
    "a trailing dot": "http://127.0.0.1./",
    "a name": "http://localhost/",
    "a name with a dot": "http://localhost./",
    "private": "http://10.1.2.3/",
    "private too": "http://192.168.1.1/",
    "link-local, metadata": "http://169.254.169.254/latest/meta-data/",
    "a cloud's own": "http://100.100.100.200/",
    "another cloud's own": "http://168.63.129.16/",
    "a third cloud's own": "http://192.0.0.192/",
    "multicast": "http://224.0.0.1/",
    "broadcast": "http://255.255.255.255/",
    "IPv6 loopback": "http://[::1]/",
    "IPv6 nothing": "http://[::]/",
    "IPv6-mapped": "http://[::ffff:127.0.0.1]/",
    "IPv6-mapped, in digits": "http://[::ffff:7f00:1]/",
    "IPv6-compatible": "http://[::127.0.0.1]/",
    "IPv6 translated": "http://[64:ff9b::7f00:1]/",
    "IPv6 tunnelled": "http://[2002:7f00:1::]/",
    "IPv6 link-local": "http://[fe80::1]/",
    "IPv6 link-local with a zone": "http://[fe80::1%25lo]/",
    "IPv6 private": "http://[fd00:ec2::254]/",
    "IPv6 multicast": "http://[ff02::1]/",
    "userinfo": "http://example.org@127.0.0.1/",
    "userinfo with a password": "http://a:b@example.org/",
    "a backslash": "http://example.org\\@127.0.0.1/",
    "a file": "file:///etc/passwd",
    "no scheme": "127.0.0.1/",
    "another scheme": "ftp://example.org/",
    "data": "data:text/plain,hi",
    "no host": "http:///etc/passwd",
    "only dots": "http://.../",
    "no port of this world": "http://example.org:99999/",
    "nothing": " ",
}


REFUSALS = ("open internet", "Use http", "user name", "has no host", "not the address of a page")


@pytest.mark.parametrize("url", TRICKS.values(), ids=TRICKS)
async def test_no_spelling_of_an_address_leads_into_our_own_network(url: str) -> None:
    told = await failure(fetch_url, url)
    assert any(reason in told for reason in REFUSALS)  # not only because the network is missing here


async def test_a_server_on_this_machine_is_never_connected_to() -> None:
    async with site(index=page("secret", "text/plain")) as found:
        port = found.url.rpartition(":")[2]
        for host in ("127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"):
            assert "secret" not in await failure(fetch_url, f"http://{host}:{port}/")
    assert found.asked == []


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"])
async def test_a_name_for_a_closed_address_is_refused(address: str) -> None:
    tool = fetcher(resolver=lambda: Names({"innocent.test": [address]}))
    told = await failure(tool, "http://innocent.test/")
    assert f"{address} is not an address of the open internet" in told


async def test_what_counts_is_the_address_that_is_connected_to() -> None:
    """A name can resolve differently each time, so the check covers the address of the connection."""
    tried: list[str] = []

    def reachable(address: str) -> bool:
        tried.append(address)
        return address == "127.0.0.1"

    async with site(index=page("hi", "text/plain")) as found:
        names = Names({"site.test": ["10.0.0.1", "127.0.0.1"]})
        tool = fetcher(resolver=lambda: names, reachable=reachable, seconds=2)
        assert (await run(tool, url=found.url)).result.text == "hi"
    assert tried == ["10.0.0.1", "127.0.0.1"]


@given(st.ip_addresses(v=4))
def test_an_address_is_as_open_inside_ipv6_as_outside(address: Any) -> None:
    assert is_public(f"::ffff:{address}") == is_public(str(address)) == is_public(f"64:ff9b::{address}")
    assert not is_public(f"2002:{int(address) >> 16:x}:{int(address) & 0xFFFF:x}::1")


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_the_open_internet_is_open(address: str) -> None:
    assert is_public(address)


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("https://Example.ORG/a/b?q=1#part", "example.org/a/b"),
        ("https://example.org", "example.org/"),
        ("https://example.org./a", "example.org/a"),
        ("https://example.org/a/../b/%2e%2e/c", "example.org/c"),
        ("http://example.org:80/", "example.org/"),
        ("http://example.org:8080/", "example.org:8080/"),
        ("https://münchen.example/ü", "xn--mnchen-3ya.example/%C3%BC"),
        ("https://a@example.org/", "https://a@example.org/"),
    ],
)
def test_rules_look_at_the_site_and_the_path(url: str, pattern: str) -> None:
    """P1"""
    assert list(fetch_url.patterns({"url": url})) == [pattern]


async def test_a_rule_decides_what_is_fetched(tmp_path: Path) -> None:
    """P2"""
    script = [calls("fetch_url", url="https://example.org/private/x"), says("no")]
    result = await play(
        tmp_path, script, tools=[web_group()], allow=["web.fetch"], deny=["web.fetch:example.org/private/*"]
    )
    assert only_call(result).state is CallState.REJECTED


# ── HTML ──────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(st.sampled_from('<>/!-&;"= apscriptlite\n'), max_size=300))
def test_any_markup_gives_some_text(html: str) -> None:
    title, text = text_of(html)
    assert "\n\n\n" not in text
    assert "\n" not in title


@pytest.mark.parametrize("piece", ["<!--", "<a <a ", "<![CDATA[", "<", "&#", "<?", "</", "<a b='"])
def test_a_page_made_to_keep_a_parser_busy_is_given_up(piece: str) -> None:
    text_of(piece * (300_000 // len(piece)), seconds=0.2)


@pytest.mark.parametrize("piece", ["<!--", "<a <a ", "<a b='"])
def test_so_is_one_that_ends_before_it_is_too_much(piece: str) -> None:
    """All of it would take a minute."""
    page = piece * (100_000 // len(piece))
    assert len(text_of(page, seconds=0.1)[1]) < len(page) // 2


def test_a_picture_inside_a_page_does_not_end_it() -> None:
    picture = "A" * 200_000
    assert text_of(f'<p>before<img src="data:image/png;base64,{picture}">after')[1] == "beforeafter"
