"""Send encoded telemetry to a collector in a separate thread, as the standard variables configure it."""

from __future__ import annotations

import gzip
import logging
import math
import os
import random
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from typing import Literal, TypeAlias
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import Request, urlopen

from dragoman.redaction import redact_text

_log = logging.getLogger("dragoman.telemetry")
_AGAIN = (429, 502, 503, 504)  # answers of a busy collector
_LONGEST_WAIT = 8.0  # maximum seconds between two attempts
_USUAL_BASE = "http://localhost:4318"
_LAST = 5.0  # maximum seconds to send the rest when a program stops
_GRACE = 0.2  # additional seconds to log what was not sent

Signal: TypeAlias = Literal["traces", "metrics"]


@dataclass(slots=True, frozen=True)
class Collector:
    """A collector, and how to send to it."""

    url: str = f"{_USUAL_BASE}/v1/traces"
    headers: Mapping[str, str] = field(default_factory=dict)
    compression: str = "none"
    timeout: float = 10.0  # seconds for all attempts of one request
    certificate: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    delay: float = 5.0  # seconds that spans are collected before they are sent
    batch: int = 512  # maximum spans of one request
    # Maximum number of waiting spans: without a reachable collector, the oldest are dropped.
    most: int = 2048
    what: str = "spans"  # the name of the items, for the log

    def tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https:"):
            return None
        context = ssl.create_default_context(cafile=self.certificate)
        if self.client_certificate:
            context.load_cert_chain(self.client_certificate, self.client_key)
        return context


def collector_from(environment: Mapping[str, str] = os.environ, signal: Signal = "traces") -> Collector:
    """Return the collector that `OTEL_EXPORTER_OTLP_*` and `OTEL_BSP_*` configure. Variables of the signal
    take precedence.

    All metrics are one report. It is sent immediately, and a newer report replaces it.
    """

    def said(name: str) -> str:
        of_signal = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}", "").strip()
        return of_signal or environment.get(f"OTEL_EXPORTER_OTLP_{name}", "").strip()

    def number(text: str, default: float) -> float:
        try:
            value = float(text or default)
        except ValueError:
            return default
        return value if math.isfinite(value) else default

    usual = Collector()
    url = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    if not url:
        base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip() or _USUAL_BASE
        url = f"{base.rstrip('/')}/v1/{signal}"
    delay = number(environment.get("OTEL_BSP_SCHEDULE_DELAY", ""), usual.delay * 1000)
    batch = number(environment.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", ""), usual.batch)
    most = number(environment.get("OTEL_BSP_MAX_QUEUE_SIZE", ""), usual.most)
    made = Collector(
        url,
        _headers(said("HEADERS")),
        said("COMPRESSION").lower() or usual.compression,
        number(said("TIMEOUT"), usual.timeout),
        said("CERTIFICATE") or None,
        said("CLIENT_CERTIFICATE") or None,
        said("CLIENT_KEY") or None,
        delay / 1000,
        max(1, int(batch)),
        max(1, int(most)),
    )
    return made if signal == "traces" else replace(made, batch=1, most=1, what="reports of metrics")


class Sender:
    """Sends encoded items that any thread adds. If the collector is unavailable, they are lost.

    No turn waits for it, and it delays the exit of the program by at most about `_LAST` seconds.
    """

    def __init__(self, collector: Collector, write: Callable[[Sequence[bytes]], bytes]) -> None:
        self._collector = collector
        self._write = write
        self._tls = collector.tls()
        self._waiting: list[bytes] = []
        self._lost = 0
        self._sending = 0  # number of items being sent and waiting
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._until = math.inf  # the time at which sending stops
        self._thread: threading.Thread | None = None

    def add(self, some: Sequence[bytes]) -> None:
        with self._changed:
            self._waiting += some
            if (over := len(self._waiting) - self._collector.most) > 0:
                del self._waiting[:over]
                self._lost += over
            if self._thread is None:
                name = f"dragoman-{self._collector.what}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            elif len(self._waiting) >= self._collector.batch:
                self._changed.notify()

    def close(self) -> None:
        """Send what is left."""
        with self._changed:
            self._until = time.monotonic() + min(_LAST, self._collector.timeout)
            self._closing.set()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(self._until - time.monotonic() + _GRACE)
            if self._thread.is_alive():  # The thread is in the middle of a request.
                self._tell(f"{self._collector.url} does not answer, and the program stops", self._sending)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._closing.is_set() and len(self._waiting) < self._collector.batch:
                    self._changed.wait(self._collector.delay)
                batch = self._waiting[: self._collector.batch]
                del self._waiting[: len(batch)]
                done = self._closing.is_set() and not batch
                lost, self._lost = self._lost, 0
                self._sending = len(batch) + len(self._waiting)
            if lost:
                self._tell("the collector does not keep up", lost)
            if done:
                return
            if time.monotonic() > self._until:
                self._tell("the collector is too slow, and the program stops", self._sending)
                return
            if batch:
                self._send(self._write(batch), len(batch))

    def _tell(self, why: str, count: int) -> None:
        _log.warning("%d %s were not sent: %s", count, self._collector.what, redact_text(why))

    def _send(self, body: bytes, count: int) -> None:
        """Send until the collector accepts the body or the time is over."""
        headers, packed = self._packed(body)
        end = min(time.monotonic() + self._collector.timeout, self._until)
        wait = 1.0
        while True:
            why, again = self._attempt(headers, packed, end - time.monotonic())
            if why is None:
                return
            wait = min(_LONGEST_WAIT, again or wait * 2) * random.uniform(0.8, 1.2)
            if again is None or time.monotonic() + wait > end or self._closing.wait(wait):
                self._tell(why, count)
                return

    def _attempt(
        self, headers: dict[str, str], body: bytes, seconds: float
    ) -> tuple[str | None, float | None]:
        """Return why an attempt failed, and the seconds until the next one: None for no retry, 0 for the
        default."""
        try:
            request = Request(self._collector.url, body, headers, method="POST")
            with urlopen(request, timeout=max(0.1, seconds), context=self._tls) as response:
                response.read()
            return None, None
        except HTTPError as error:
            with error:
                after = error.headers.get("Retry-After", "")
            again = (float(after) if after.isdecimal() else 0.0) if error.code in _AGAIN else None
            return f"{self._collector.url} answered {error.code} {error.reason}", again
        except (OSError, HTTPException) as error:
            return f"{self._collector.url} cannot be reached: {error}", 0.0
        except ValueError as error:  # The address or a header is invalid.
            return f"{self._collector.url} cannot be asked: {error}", None

    def _packed(self, body: bytes) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body, compressed as the variables request."""
        headers = {
            "Content-Type": "application/x-protobuf",
            "User-Agent": "dragoman",
            **self._collector.headers,
        }
        match self._collector.compression:
            case "gzip":
                body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
            case "deflate":
                body, headers["Content-Encoding"] = zlib.compress(body), "deflate"
        return headers, body


def _headers(text: str) -> dict[str, str]:
    """Parse `name=value,name=value` with URL-encoded values."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs if name.strip()}
