"""Errors of the way to a server and back: no connection, a broken stream, a body that is no stream.

Each becomes a `ProviderError` that says what a person can do. Errors that a provider reports itself are in
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
from dragoman.wire.provider_errors import provider_error, reports_error

EXCERPT = 200  # bytes of a body that an error repeats
BLANK = b"\xef\xbb\xbf \t\r\n"
_NOT_CONNECTED = "Connect call failed"  # asyncio's words, in place of what its number means
_CUT_OFF = "Response payload is not completed"  # aiohttp's, before the names of its own exceptions

# ── no reply ──────────────────────────────────────────────────────────────────────────────────────


def unreachable(error: BaseException, url: str, first_byte: float | None) -> ProviderError:
    """For what was raised before the first byte came."""
    import aiohttp  # already there: it raised the error

    at, reason = host_of(url), reason_of(error)
    message, kind, retryable = f"no connection to {at}: {reason}", "connection", True
    hint = "Check the address and the network"
    match error:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            message, retryable = f"{at} is not the address of a server", False
            hint = "Check the provider's base URL"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            retryable, hint = False, "If the certificate is your own, name its file as `ca`"
        case aiohttp.ClientProxyConnectionError():
            message, hint = f"the proxy on the way to {at} cannot be reached: {reason}", "Check its address"
        case aiohttp.ClientHttpProxyError():
            message, retryable = f"the proxy on the way to {at} refused: {reason}", False
            hint = "Check the proxy's user name and password"
        case aiohttp.ConnectionTimeoutError():
            message, kind = f"{at} did not accept a connection in time", "timeout"
        case TimeoutError():
            message, kind = f"{at} did not begin to reply within {first_byte:g} s", "timeout"
            hint = "Try again, or allow more time before the first byte"
        case aiohttp.ClientConnectorError():
            hint = "Is the server running, and is the base URL right?"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            message, hint = f"{at} hung up before it replied: {reason}", "Try again"
    return ProviderError(message, kind=kind, retryable=retryable, hint=hint)


def redirected(url: str, status: int, there: str | None) -> ProviderError:
    return ProviderError(
        f"{host_of(url)} sends requests on to {there or 'an address it does not name'}",
        kind="redirect",
        status=status,
        hint="A key is never sent after a redirect: write that address into the base URL, if you trust it",
    )


# ── a reply that breaks off ───────────────────────────────────────────────────────────────────────


def broken(error: BaseException, url: str) -> ProviderError:
    return ProviderError(
        f"the connection to {host_of(url)} broke in the middle of the reply: {reason_of(error)}",
        kind="connection",
        retryable=True,
        hint="What had arrived is stored; try again",
    )


def stalled(url: str, seconds: float | None) -> ProviderError:
    return ProviderError(
        f"{host_of(url)} sent nothing for {seconds:g} s in the middle of its reply",
        kind="timeout",
        retryable=True,
        hint="What had arrived is stored; try again, or allow more time between chunks",
    )


def too_large(url: str, most: int) -> ProviderError:
    return ProviderError(
        f"{host_of(url)} sent more than {most / 1_000_000:g} MB",
        kind="too_large",
        hint=f"What had arrived is stored; to read larger replies, set files = {{ reply = {2 * most} }} "
        "(bytes) in the provider's table in dragoman.toml",
    )


def too_long(url: str, seconds: float | None) -> ProviderError:
    return ProviderError(
        f"{host_of(url)} had not finished its reply after {seconds:g} s",
        kind="timeout",
        hint="What had arrived is stored; ask for less, or allow more time for a whole reply",
    )


def unfinished() -> ProviderError:
    """For a stream that ended in good order, but before its wire's word for the end of a reply."""
    return ProviderError(
        "the stream ended before the reply was finished",
        kind="unfinished",
        retryable=True,
        hint="What had arrived is stored; try again",
    )


def garbled(frame: bytes, error: Exception) -> ProviderError:
    failure = ProviderError(
        f"a piece of the stream could not be read: {excerpt(frame)} ({reason_of(error)})",
        kind="garbled",
        retryable=True,
        hint="The stream was cut, or belongs to another wire than the one that was chosen",
    )
    failure.__cause__ = error
    return failure


# ── something else than a stream ──────────────────────────────────────────────────────────────────


def is_no_stream(body: bytes) -> bool:
    """True if it begins as JSON or a web page does, and no line of an event stream can."""
    return body.lstrip(BLANK)[:1] in (b"{", b"[", b"<")


def no_stream(body: bytes) -> ProviderError:
    """For a body that came with a status of success and is none."""
    if body.lstrip(BLANK).startswith(b"<"):
        return ProviderError(
            f"a web page came instead of a stream: {excerpt(body)}",
            kind="no_stream",
            hint="Check the provider's base URL: something else answers there",
        )
    try:
        found: JsonValue = from_json(body)
    except ValueError:
        found = None
    first = found[0] if isinstance(found, list) and found else found
    if reports_error(first):
        return provider_error(found)
    return ProviderError(
        f"a whole JSON body came instead of a stream: {excerpt(body)}",
        kind="no_stream",
        hint="What answers there does not stream: use a server, or an address of it, that does",
    )


def no_event(head: bytes) -> ProviderError:
    """For a stream that ended without a single event."""
    return ProviderError(
        f"the reply held no event, only {excerpt(head)}" if head else "the reply was empty",
        kind="no_stream",
        retryable=not head,
        hint="Try again, or check the provider's base URL",
    )


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def host_of(url: str) -> str:
    """The part of an address that may be shown: no path, no user, no password."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the provider"
    return f"{parts.hostname}{port}" if parts.hostname else "the provider"


def reason_of(error: BaseException) -> str:
    """What went wrong, in the system's words, without addresses and headers."""
    cause = getattr(error, "os_error", None) or error
    words = str(getattr(cause, "strerror", None) or getattr(cause, "message", None) or cause)
    if _NOT_CONNECTED in words and (number := getattr(cause, "errno", None)):
        return os.strerror(number)
    if words.startswith(_CUT_OFF):
        return "it was closed before the end"
    return " ".join(words.split()) or type(error).__name__


def excerpt(body: bytes) -> str:
    """The first bytes, on one line."""
    text = " ".join(body[: 4 * EXCERPT].decode(errors="replace").split())
    return repr(text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from a header that gives them, or the date when they are over."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("Retry-After", "").strip()
        if value[:1].isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - now) if value else None
    except ValueError:
        return None
