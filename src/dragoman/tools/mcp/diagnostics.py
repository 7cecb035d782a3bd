"""Explain why an MCP connection ended: standard error, HTTP status, an exceeded limit. Needs no SDK."""

from __future__ import annotations

import re
from dataclasses import dataclass

STDERR_KEPT = 4000  # characters
UNKNOWN_EFFECT = "Whether the call took effect is not known."


class ConnectionLost(Exception):
    """The connection ended before a call had its result. `ran` is False if the server never received the
    call."""

    def __init__(self, why: str, *, ran: bool) -> None:
        super().__init__(why)
        self.ran = ran


@dataclass(slots=True)
class Diagnostics:
    """Information collected during a connection, to explain why it ended."""

    stderr: str = ""  # the end of what a program wrote there
    status: int | None = None  # of an HTTP refusal, which the SDK does not expose
    overflow: str = ""  # the limit that it exceeded, if we closed the connection for that

    def add_stderr(self, data: bytes) -> None:
        self.stderr = (self.stderr + data.decode("utf-8", "replace"))[-STDERR_KEPT:]

    @property
    def lines(self) -> list[str]:
        """Return what it wrote, without colors and other terminal control codes."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.stderr)
        lines = (line.rstrip().expandtabs() for line in plain.splitlines())
        return ["".join(one for one in line if one.isprintable()) for line in lines if line]

    @property
    def stderr_tail(self) -> str:
        """Return its last lines, for people."""
        lines = [line.strip() for line in self.lines if line.strip()]
        return "".join(one for one in " / ".join(lines[-3:])[-500:] if one.isprintable())
