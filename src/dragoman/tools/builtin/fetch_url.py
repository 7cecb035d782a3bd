"""Read a web page as text with `fetch_url`, and block access to internal networks."""

from __future__ import annotations

import asyncio
import codecs
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.tools.tool import Tool, ToolContext, ToolOutput, tool
from dragoman.wire.http_client.network import is_public
from dragoman.wire.transport_errors import reason_of

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver
    from yarl import URL


# Extract the title and the text of a web page. Uses no network.


SILENT = frozenset(
    ["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select", "textarea"]
)
BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "title",
        "tr",
        "ul",
    ]
)
CELLS = frozenset({"td", "th"})
PIECE = 8192  # characters: the deadline is checked between two chunks
PENDING = 1 << 18  # characters of one tag: enough for an image embedded in it
READING_SECONDS = 5.0


class _Late(Exception):
    """Raised when the time limit is reached."""


def text_of(html: str, seconds: float = READING_SECONDS) -> tuple[str, str]:
    """Return the page's title and text.

    A page built to stall the parser is read only until the time limit.
    """
    page = _Page(until=time.monotonic() + seconds)
    with suppress(_Late):
        for at in range(0, len(html), PIECE):
            page.feed(html[at : at + PIECE])
            page.look_at_the_time()
            if len(page.rawdata) > PENDING:
                break
        else:
            page.close()
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in "".join(page.text).split("\n"))
    return " ".join("".join(page.title).split()), re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Page(HTMLParser):
    def __init__(self, until: float) -> None:
        super().__init__(convert_charrefs=True)
        self._until = until
        self.text: list[str] = []
        self.title: list[str] = []
        self._silent: str | None = None  # the tag whose end is awaited
        self._depth = 0  # nesting depth of tags with that name
        self._in_title = False
        self._in_pre = False

    def look_at_the_time(self) -> None:
        if time.monotonic() > self._until:
            raise _Late

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent is not None:
            self._depth += tag == self._silent
        elif tag in SILENT:
            self._silent, self._depth = tag, 1
        else:
            self._in_title = self._in_title or (tag == "title" and not self.title)
            self._in_pre = self._in_pre or tag == "pre"
            self._space(tag)
            if tag == "li":
                self.text.append("- ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent is None:
            self._space(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._silent is not None:
            self._depth -= tag == self._silent
            self._silent = self._silent if self._depth else None
            return
        if tag == "title":
            self._in_title = False
        if tag == "pre":
            self._in_pre = False
        self._space(tag)

    def handle_data(self, data: str) -> None:
        # At the end of a page, the parser searches the rest of it at each "<" that does not start a tag.
        self.look_at_the_time()
        if self._silent is not None:
            return
        if self._in_title:
            self.title.append(data)
        else:
            self.text.append(data if self._in_pre else re.sub(r"\s+", " ", data))

    def _space(self, tag: str) -> None:
        if tag in BLOCKS:
            self.text.append("\n")
        elif tag in CELLS:
            self.text.append(" ")


SECONDS = 30.0  # for everything, including redirects
LARGEST = 2_000_000  # bytes of a page
REDIRECTS = 5
HEADERS = {
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.8, application/xml;q=0.8",
    "Accept-Encoding": "identity",
    "User-Agent": "dragoman",
}
# subtypes of application/…, also after a plus sign
TEXTS = ("json", "xml", "javascript", "yaml", "toml", "x-ndjson")
# Encodings that Python knows and no page uses. Decoding a page as punycode takes minutes and blocks every
# other request.
NO_CHARSETS = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined")
PORTS = {"http": 80, "https": 443}


def fetcher(
    *,
    resolver: Callable[[], AbstractResolver] | None = None,
    reachable: Callable[[str], bool] = is_public,
    seconds: float = SECONDS,
    largest: int = LARGEST,
) -> Tool:
    """Return the tool. `resolver` creates the DNS resolver. `reachable` says which addresses may be used."""

    @tool(
        name="fetch_url",
        permission="web.fetch",
        writes="nothing",
        pattern=_patterns,
        wider=_wider,
        replay="safe",
        cancellable=True,
        timeout=seconds + 15,
        examples=[{"url": "https://docs.python.org/3/library/ast.html"}],
    )
    async def fetch_url(
        url: Annotated[str, Field(max_length=4000, description="beginning with https:// or http://")],
        context: ToolContext,
    ) -> ToolOutput:
        """Read the text of a web page, or of a text file on the web."""
        return await _Fetch(resolver, reachable, seconds, largest, context).run(url)

    return fetch_url


def parse_url(text: str) -> URL:
    """Return the URL as it will be requested. Raises ToolFailed if no page can have it or it hides another
    one."""
    from yarl import URL

    try:
        url = URL(text.strip()).with_fragment(None)
        host = (url.raw_host or "").rstrip(".")
    except (ValueError, TypeError) as error:
        raise ToolFailed(f"{text} is not the address of a page: {error}") from error
    if url.scheme not in PORTS:
        raise ToolFailed(f"Invalid address {text!r}. Use http:// or https://.")
    if not host:
        raise ToolFailed(f"Address {text!r} has no host.")
    if url.raw_user is not None or url.raw_password is not None:
        raise ToolFailed(f"Address {text!r} has a user name or password. Use one without.")
    return url if host == url.raw_host else url.with_host(host)


def _patterns(arguments: Arguments) -> Sequence[str]:
    """Return what rules match: the site and the path, as they will be requested."""
    given = str(arguments.get("url", ""))
    try:
        url = parse_url(given)
    except ToolFailed:
        return (given,)  # It is not fetched, even if the rules allow it.
    return (_pattern(url),)


def _pattern(url: URL) -> str:
    return f"{_site(url)}{url.raw_path}"


def _wider(arguments: Arguments) -> Sequence[str]:
    """Return the pattern for everything on the same site."""
    try:
        return (f"{_site(parse_url(str(arguments.get('url', ''))))}/*",)
    except ToolFailed:
        return ()


def _site(url: URL) -> str:
    host = str(url.host_subcomponent)
    return host if url.port == PORTS[url.scheme] else f"{host}:{url.port}"


@dataclass(slots=True, frozen=True)
class _Body:
    type: str
    data: bytes
    charset: str
    cut: bool

    @property
    def text(self) -> str:
        try:
            if codecs.lookup(self.charset).name not in NO_CHARSETS:
                return self.data.decode(self.charset, errors="replace")
        except LookupError:  # an unknown charset
            pass
        return self.data.decode(errors="replace")


class _Fetch:
    """The retrieval of one page, including its redirects."""

    def __init__(
        self,
        resolver: Callable[[], AbstractResolver] | None,
        reachable: Callable[[str], bool],
        seconds: float,
        largest: int,
        context: ToolContext,
    ) -> None:
        self._context = context
        self._resolver = resolver
        self._reachable = reachable
        self._seconds = seconds
        self._largest = largest
        self._refused: str | None = None  # an address that was refused

    async def run(self, text: str) -> ToolOutput:
        import aiohttp

        url = parse_url(text)
        try:
            async with self._session() as session:
                url, body = await self._follow(session, url)
        except TimeoutError as error:
            raise ToolFailed(f"{_site(url)} took longer than {self._seconds:g} s.") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if self._refused is not None and isinstance(error, aiohttp.ClientConnectorError):
                raise ToolFailed(
                    f"Dragoman does not fetch {_site(url)}: {self._refused} is not an "
                    "address of the open internet."
                ) from error
            raise ToolFailed(f"{_site(url)} could not be read: {reason_of(error)}") from error
        return await self._output(url, body)

    def _session(self) -> aiohttp.ClientSession:
        import aiohttp

        connector = aiohttp.TCPConnector(
            resolver=self._resolver() if self._resolver is not None else None,
            socket_factory=self._socket,
            force_close=True,
        )
        # Ignore the environment's proxies: a proxy would resolve the name again, and could reach what we
        # cannot check.
        return aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=HEADERS, trust_env=False
        )

    def _socket(self, found: aiohttp.AddrInfoType) -> socket.socket:
        """Check the exact address of the connection: an earlier lookup of the name does not count."""
        family, kind, protocol, _, address = found
        if not self._reachable(str(address[0])):
            self._refused = str(address[0])
            raise OSError(f"{address[0]} is not an address of the open internet")
        return socket.socket(family, kind, protocol)

    async def _follow(self, session: aiohttp.ClientSession, url: URL) -> tuple[URL, _Body]:
        first, judged = _site(url).removeprefix("www."), _pattern(url)
        for _ in range(REDIRECTS + 1):
            if _is_address(url) and not self._reachable(url.raw_host or ""):
                raise ToolFailed(f"Dragoman does not fetch {url}: it is not on the open internet.")
            if _site(url).removeprefix("www.") != first:  # The rules were checked for the first site only.
                raise ToolFailed(f"The page redirects to another site. To follow it, fetch {url}.")
            if (pattern := _pattern(url)) != judged:
                await self._context.require_permission(pattern, f"The page sends on to {url}. Go there?")
                judged = pattern
            async with (
                asyncio.timeout(self._seconds),
                session.get(url, allow_redirects=False) as response,
            ):
                there = response.headers.get("Location")
                if response.status not in (301, 302, 303, 307, 308) or there is None:
                    return url, await self._body(url, response)
            url = parse_url(str(url.join(_address(there))))
        raise ToolFailed(f"{_site(url)} redirects without end.")

    async def _body(self, url: URL, response: aiohttp.ClientResponse) -> _Body:
        if response.status != 200:
            raise ToolFailed(f"{url} answered {response.status} {response.reason or ''}".rstrip())
        type = response.content_type
        main, _, kind = type.partition("/")
        if main != "text" and not (main == "application" and kind.rpartition("+")[2] in TEXTS):
            raise ToolFailed(f"{url} is {type}, not text.")
        data = bytearray()
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > self._largest:
                break
        cut = len(data) > self._largest
        return _Body(type, bytes(data[: self._largest]), response.charset or "utf-8", cut)

    async def _output(self, url: URL, body: _Body) -> ToolOutput:
        title, text = "", body.text
        if body.type in ("text/html", "application/xhtml+xml"):
            title, text = await asyncio.to_thread(text_of, text)
        if body.cut:
            text += f"\n[… the page continues: only its first {self._largest:,} bytes were read …]"
        metadata: dict[str, JsonValue] = {"url": str(url), "type": body.type}
        return ToolOutput(text or "The page has no text.", title=title or _site(url), metadata=metadata)


def _address(text: str) -> URL:
    from yarl import URL

    return URL(text)


def _is_address(url: URL) -> bool:
    """Return whether the host is written as a number, in any notation."""
    host = url.raw_host or ""
    return ":" in host or host.rpartition(".")[2][:1].isdigit()


fetch_url = fetcher()
