"""Turn transport failures into errors: no connection, a broken stream, a body that is not a stream.

Each becomes a `ProviderError` with what a user can do. Errors that a provider reports itself are in
`wire/provider_errors.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.errors import ProviderError
from dragoman.sentences import sentence
from dragoman.wire.provider_errors import provider_error, reports_error

EXCERPT = 200  # bytes of a body that an error repeats
BLANK = b"\xef\xbb\xbf \t\r\n"
_NOT_CONNECTED = "Connect call failed"  # asyncio's words in place of the error number's message
_CUT_OFF = "Response payload is not completed"  # aiohttp's, before the names of its exceptions

# ── no reply ──────────────────────────────────────────────────────────────────────────────────────


def unreachable(error: BaseException, url: str, first_byte: float | None) -> ProviderError:
    """Return the error for an exception raised before the first byte came."""
    import aiohttp  # already imported: it raised the error

    at, reason = host_of(url), reason_of(error)
    message, kind, retryable = sentence("connect.failed", at=at, reason=reason), "connection", True
    hint = sentence("hint.network")
    match error:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            message, retryable = sentence("connect.no_server", at=at), False
            hint = sentence("hint.base_url")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            retryable, hint = False, sentence("hint.ca")
        case aiohttp.ClientProxyConnectionError():
            message, hint = sentence("proxy.unreachable", at=at, reason=reason), sentence("hint.address")
        case aiohttp.ClientHttpProxyError():
            message, retryable = sentence("proxy.refused", at=at, reason=reason), False
            hint = sentence("hint.proxy")
        case aiohttp.ConnectionTimeoutError():
            message, kind = sentence("connect.slow", at=at), "timeout"
        case TimeoutError():
            message, kind = sentence("reply.late", at=at, seconds=first_byte), "timeout"
            hint = sentence("hint.first_byte")
        case aiohttp.ClientConnectorError():
            hint = sentence("hint.running")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            message, hint = sentence("reply.none", at=at, reason=reason), sentence("hint.again")
    return ProviderError(message, kind=kind, retryable=retryable, hint=hint)


def redirected(url: str, status: int, there: str | None) -> ProviderError:
    return ProviderError(
        sentence("connect.redirect", host=host_of(url), there=there or "an address it does not name"),
        kind="redirect",
        status=status,
        hint=sentence("hint.redirect"),
    )


# ── a reply that breaks off ───────────────────────────────────────────────────────────────────────


def broken(error: BaseException, url: str) -> ProviderError:
    return ProviderError(
        sentence("reply.broke", host=host_of(url), reason=reason_of(error)),
        kind="connection",
        retryable=True,
        hint=sentence("hint.stored"),
    )


def stalled(url: str, seconds: float | None) -> ProviderError:
    return ProviderError(
        sentence("reply.stalled", host=host_of(url), seconds=seconds),
        kind="timeout",
        retryable=True,
        hint=sentence("hint.between"),
    )


def too_large(url: str, most: int) -> ProviderError:
    return ProviderError(
        sentence("reply.too_big", host=host_of(url), megabytes=f"{most / 1_000_000:g}"),
        kind="too_large",
        hint=sentence("hint.larger_reply", reply=2 * most),
    )


def too_much_text(url: str, most: int) -> ProviderError:
    return ProviderError(
        sentence("reply.too_much_text", host=host_of(url), characters=f"{most:,}"),
        kind="too_large",
        hint=sentence("hint.shorter_reply"),
    )


def too_long(url: str, seconds: float | None) -> ProviderError:
    return ProviderError(
        sentence("reply.too_long", host=host_of(url), seconds=seconds),
        kind="timeout",
        hint=sentence("hint.less"),
    )


def unfinished() -> ProviderError:
    """Return the error for a stream that ended normally, but without its wire's end of the reply."""
    return ProviderError(
        sentence("reply.unfinished"),
        kind="unfinished",
        retryable=True,
        hint=sentence("hint.stored"),
    )


def garbled(frame: bytes, error: Exception) -> ProviderError:
    failure = ProviderError(
        sentence("stream.garbled_piece", piece=excerpt(frame), reason=reason_of(error)),
        kind="garbled",
        retryable=True,
        hint=sentence("hint.other_wire"),
    )
    failure.__cause__ = error
    return failure


# ── something else than a stream ──────────────────────────────────────────────────────────────────


def is_no_stream(body: bytes) -> bool:
    """Return whether a body begins like JSON or a web page, which no line of an event stream does."""
    return body.lstrip(BLANK)[:1] in (b"{", b"[", b"<")


def no_stream(body: bytes) -> ProviderError:
    """Return the error for a body with a success status that is not a stream."""
    if body.lstrip(BLANK).startswith(b"<"):
        return ProviderError(
            sentence("stream.page", body=excerpt(body)),
            kind="no_stream",
            hint=sentence("hint.something_else"),
        )
    try:
        found: JsonValue = from_json(body)
    except ValueError:
        found = None
    first = found[0] if isinstance(found, list) and found else found
    if reports_error(first):
        return provider_error(found)
    return ProviderError(
        sentence("stream.json", body=excerpt(body)),
        kind="no_stream",
        hint=sentence("hint.no_stream"),
    )


def no_event(head: bytes) -> ProviderError:
    """Return the error for a stream that ended without a single event."""
    return ProviderError(
        sentence("stream.no_event", head=excerpt(head)) if head else sentence("stream.empty"),
        kind="no_stream",
        retryable=not head,
        hint=sentence("hint.again_or_url"),
    )


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def host_of(url: str) -> str:
    """Return the part of a URL that can be shown: no path, no user, no password."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the provider"
    return f"{parts.hostname}{port}" if parts.hostname else "the provider"


def reason_of(error: BaseException) -> str:
    """Return what went wrong, in the system's words, without addresses and headers."""
    cause = getattr(error, "os_error", None) or error
    words = str(getattr(cause, "strerror", None) or getattr(cause, "message", None) or cause)
    if _NOT_CONNECTED in words and (number := getattr(cause, "errno", None)):
        return os.strerror(number)
    if words.startswith(_CUT_OFF):
        return sentence("reply.closed")
    return " ".join(words.split()) or type(error).__name__


def excerpt(body: bytes) -> str:
    """Return the first bytes, on one line."""
    text = " ".join(body[: 4 * EXCERPT].decode(errors="replace").split())
    return repr(text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait, from a header with a number, or with the date when the wait ends."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("Retry-After", "").strip()
        if value[:1].isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - now) if value else None
    except ValueError:
        return None
