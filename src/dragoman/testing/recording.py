"""Record real providers: requests and responses, in a file that tests play.

    async with Recording("weather.jsonl") as recording:  # plays; with record=True it asks the provider
        async with Runtime("chat.db", model=recording.models("openai/gpt-5.4")) as runtime: …

Requests go to a small server on loopback. It passes them on and writes them down, or answers from the file.
The wire reads the provider's bytes, including whole streams. Headers of requests are never kept, so no key is
stored. Secrets of a known shape are removed from the bodies. `redact` removes everything else that must not
be in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import ClientResponse, ClientSession, web
from multidict import CIMultiDict
from pydantic import JsonValue

from dragoman.config.sources import catalog_here
from dragoman.errors import ConfigError, ProviderError
from dragoman.providers.compatible import OpenAICompatible
from dragoman.providers.models import Models, models_named
from dragoman.providers.sign_in import Key, Keys
from dragoman.redaction import redact_text
from dragoman.testing.redact_body import REDACTED, redact_body, redact_known
from dragoman.wire.http_client.client import HttpClient, Retry
from dragoman.wire.http_client.payload import Payload

_TARGET = "X-Dragoman-Target"
_MISMATCH = "X-Dragoman-Mismatch"  # of a response that no provider sent
_ESCAPED = "surrogateescape"  # A chunk can begin in the middle of a character.
_IDS = ("id", "call_id", "tool_call_id", "tool_use_id")
_KEPT = ("Content-Type", "Retry-After")
_NO_KEY = "played-without-a-key"  # Errors hide a key by its text, so no other text may contain it.
_AGAIN = "Fix the test, or record again (pytest --dragoman-record)"
_BEFORE, _SHOWN = 20, 80  # characters shown of a difference: before it, and in all
_DATE = re.compile(r"Today is [^.\n]{5,60}\.")  # The date in the system prompt changes each day.


@dataclass(slots=True, frozen=True)
class Recorded:
    """One request and its response. `chunks` are the body as it arrived."""

    url: str
    body: JsonValue
    status: int
    headers: dict[str, str]
    chunks: list[str]


class Recording:
    """A file of exchanges. Matches of the patterns in `redact` are replaced in the file and in comparisons.
    Secrets of a known shape are always removed."""

    def __init__(
        self, file: str | Path, *, record: bool = False, redact: Sequence[str | re.Pattern[str]] = ()
    ) -> None:
        self.file = Path(file)
        self.record = record
        self._patterns = [re.compile(one) for one in redact]
        self._exchanges: list[Recorded] = []
        self._played = 0
        self._stack = AsyncExitStack()
        self._client: _Redirected | None = None
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        if not self.record:
            self._exchanges = self._load()
        application = web.Application(client_max_size=1 << 30)
        application.router.add_post("/", self._answer)
        runner = web.AppRunner(application)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._client = _Redirected(f"http://127.0.0.1:{runner.addresses[0][1]}/")
        self._stack.push_async_callback(self._client.close)
        if self.record:
            self._session = await self._stack.enter_async_context(ClientSession())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        if self.record and error is None:
            lines = [json.dumps(asdict(one)) for one in self._exchanges]
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def models(self, default: str | OpenAICompatible, **options: Any) -> Models:
        """Return models that go through this recording, by name or address. To play a recording, no key is
        needed."""
        if self._client is None:
            raise ConfigError("Use a recording in an `async with` statement.")
        options = {"client": self._client, **({} if self.record else {"keys": _AnyKey()}), **options}
        if isinstance(default, str):
            return Models(default, **options)
        catalog = options.pop("catalog", None) or catalog_here()
        return models_named(default, catalog, None, **options)

    def _load(self) -> list[Recorded]:
        try:
            lines = self.file.read_text("utf-8").splitlines()
            return [Recorded(**json.loads(line)) for line in lines if line.strip()]
        except OSError as error:
            raise ConfigError(
                f"{self.file}: No recording found. Make one with record=True, or pytest --dragoman-record."
            ) from error
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{self.file} is not a recording: {error}") from error

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        url, body = request.headers[_TARGET], await request.read()
        asked = self._redacted(_with_plain_ids(json.loads(body), {}))
        return await (
            self._ask(request, url, body, asked) if self.record else self._play(request, url, asked)
        )

    async def _ask(self, request: web.Request, url: str, body: bytes, asked: JsonValue) -> web.StreamResponse:
        """Pass the request on, and keep the response."""
        headers = CIMultiDict(request.headers)
        for name in (_TARGET, "Host", "Content-Length", "Transfer-Encoding"):
            headers.popall(name, None)
        assert self._session is not None
        async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            kept = {name: response.headers[name] for name in _KEPT if name in response.headers}
            passed = web.StreamResponse(status=response.status, headers=kept)
            await passed.prepare(request)
            chunks: list[bytes] = []
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                await passed.write(chunk)
        text = b"".join(chunks).decode("utf-8", _ESCAPED)
        if (safe := self._redacted_body(text, response.headers.get("Content-Type", ""))) != text:
            chunks = [safe.encode("utf-8", _ESCAPED)]  # A match can span two chunks.
        pieces = [chunk.decode("utf-8", _ESCAPED) for chunk in chunks]
        self._exchanges.append(Recorded(redact_text(url), asked, response.status, kept, pieces))
        return passed

    async def _play(self, request: web.Request, url: str, asked: JsonValue) -> web.StreamResponse:
        """Return the next exchange of the file if it is this one."""
        if self._played >= len(self._exchanges):
            return _wrong(f"{self.file} has {len(self._exchanges)} exchanges, and this is one more")
        held = self._exchanges[self._played]
        address = redact_text(url)
        differs = _differences(asked, held.body) if address == held.url else [_both("url", address, held.url)]
        if differs:
            where = f"{self.file}, line {self._played + 1}"
            return _wrong(f"{where} is another request: it differs in {'; '.join(differs)}")
        self._played += 1
        response = web.StreamResponse(status=held.status, headers=held.headers)
        await response.prepare(request)
        for chunk in held.chunks:
            await response.write(chunk.encode("utf-8", _ESCAPED))
        return response

    def _redacted(self, value: JsonValue) -> JsonValue:
        match value:
            case str():
                return self._redacted_text(_DATE.sub("Today is ….", value))
            case dict():
                return {name: self._redacted(inner) for name, inner in value.items()}
            case list():
                return [self._redacted(inner) for inner in value]
            case _:
                return value

    def _redacted_body(self, body: str, kind: str) -> str:
        if "eventstream" not in kind:  # Its frames have checksums.
            body = redact_body(body, self._redacted_text)
        return self._replaced(body)

    def _redacted_text(self, text: str) -> str:
        return redact_known(self._replaced(text))

    def _replaced(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        return text


class _Redirected(HttpClient):
    """Sends all requests to the recording, which knows their real addresses."""

    may_upload = False  # IDs of uploaded files differ each time.

    def __init__(self, address: str) -> None:
        super().__init__(retry=Retry(first_wait=0.01))
        self._address = address

    async def post(
        self, url: str, *, headers: Mapping[str, str], body: bytes | Payload, exact: bool = False
    ) -> ClientResponse:
        response = await super().post(self._address, headers={**headers, _TARGET: url}, body=body)
        # The test is wrong, or the recording is old. This is not an HTTP error.
        if _MISMATCH in response.headers:
            raise ProviderError(await response.text(), kind="recording", hint=_AGAIN)
        return response


class _AnyKey(Keys):
    """Keys that are never missing: a recording plays without one."""

    def __init__(self) -> None:
        super().__init__(use_keyring=False)

    def find(self, provider: Any) -> Any:
        return super().find(provider) or Key(_NO_KEY, "the API key", "given")


def _with_plain_ids(value: JsonValue, seen: dict[str, str], name: str = "") -> JsonValue:
    """Return the body with numbered call IDs, because the real ones differ in every run."""
    match value:
        case dict():
            return {key: _with_plain_ids(inner, seen, key) for key, inner in value.items()}
        case list():
            return [_with_plain_ids(inner, seen) for inner in value]
        case str() if name in _IDS:
            return seen.setdefault(value, f"id {len(seen) + 1}")
        case _:
            return value


def _wrong(message: str) -> web.Response:
    return web.Response(text=message, headers={_MISMATCH: "yes"})


def _differences(one: JsonValue, other: JsonValue, at: str = "") -> list[str]:
    """Yield some places where two bodies differ, each with the new and the old value."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = dict.fromkeys([*one, *other])
        found = [
            place
            for name in names
            for place in _differences(one.get(name), other.get(name), f"{at}.{name}" if at else name)
        ]
        return found[:5]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [place for i, (a, b) in pairs for place in _differences(a, b, f"{at}[{i}]")][:5]
    return [] if one == other else [_both(at or "body", one, other)]


def _both(at: str, now: JsonValue, then: JsonValue) -> str:
    if isinstance(now, str) and isinstance(then, str):  # from the first difference on
        parts = (at for at, (a, b) in enumerate(zip(now, then, strict=False)) if a != b)
        begin = max(0, next(parts, min(len(now), len(then))) - _BEFORE)
        now, then = (f"{'…' if begin else ''}{text[begin:]}" for text in (now, then))
    return f"{at} ({_short(now)}, recorded {_short(then)})"


def _short(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
