"""Write log lines as text or JSON: one for each outcome, with its turn and trace.

No line contains contents: neither messages nor arguments nor results. Secrets are removed from all lines.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, TextIO, TypeAlias

from dragoman.errors import ConfigError
from dragoman.redaction import RedactingFormatter, redact_text
from dragoman.trace_context import current_trace

LogForm: TypeAlias = Literal["text", "json"]

LEVELS = ("debug", "info", "warning", "error")
ROOMS = ("background", "runtime", "server", "store", "telemetry", "turn")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure_logs(form: LogForm | None, levels: Sequence[str] = (), stream: TextIO | None = None) -> None:
    """Configure logging. Without a form and a level, nothing changes.

    A level is a word of `LEVELS` for all of Dragoman's loggers, or `ROOM=LEVEL` for one. With a form but no
    level, it is `info`, which includes every outcome.
    """
    if form is None and not levels:
        return
    whole, rooms = _read_levels(levels)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # Other libraries log only warnings and errors.
    logging.getLogger("dragoman").setLevel((whole or "info").upper())
    for room, level in rooms.items():
        logging.getLogger(f"dragoman.{room}").setLevel(level.upper())


def _read_levels(levels: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    whole: str | None = None
    rooms: dict[str, str] = {}
    for text in levels:
        room, given, level = text.rpartition("=")
        if level.lower() not in LEVELS:
            raise ConfigError(f"Invalid --log-level {text!r}. Choose one of {', '.join(LEVELS)}.")
        if not given:
            whole = level.lower()
        elif room not in ROOMS:
            raise ConfigError(f"Unknown package in --log-level {text!r}. Choose one of {', '.join(ROOMS)}.")
        else:
            rooms[room] = level.lower()
    return whole, rooms


class TextFormatter(RedactingFormatter):
    """`2026-11-15 20:33:01 INFO turn: turn_… completed (seconds 1.2, …)`."""

    def format(self, record: logging.LogRecord) -> str:
        known = fields_of(record)
        if (context := current_trace()) is not None:
            known["trace"] = context.trace
        fields = ", ".join(f"{name} {value}" for name, value in known.items())
        at = datetime.fromtimestamp(record.created).isoformat(" ", "seconds")
        room = record.name.removeprefix("dragoman.")
        about = f" ({fields})" if fields else ""
        return redact_text(f"{at} {record.levelname} {room}: ") + super().format(record) + redact_text(about)


class JsonFormatter(logging.Formatter):
    """Writes one JSON object on each line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact_text(record.getMessage()),
        }
        for name, value in fields_of(record).items():
            line[name] = redact_text(value) if isinstance(value, str) else value
        if (context := current_trace()) is not None:
            line |= {"trace_id": context.trace, "span_id": context.span}
        if record.exc_info:
            line["exception"] = redact_text(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields that were logged in addition to the message."""
    return {name: value for name, value in vars(record).items() if name not in _PLAIN and value is not None}
