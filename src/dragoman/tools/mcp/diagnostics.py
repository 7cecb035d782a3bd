"""What a connection shows of itself beside the protocol: last words, refusals, and what made us hang up."""

from __future__ import annotations

import re
from dataclasses import dataclass

KEPT = 4000  # characters of what a program complained about


@dataclass(slots=True)
class Evidence:
    """Gathered while a connection lasts, for whoever has to say why it ended."""

    complaints: str = ""  # the end of what a program wrote to standard error
    status: int | None = None  # what HTTP said no with; the protocol above it does not tell
    too_much: str = ""  # why we stopped listening

    def complained(self, data: bytes) -> None:
        self.complaints = (self.complaints + data.decode("utf-8", "replace"))[-KEPT:]

    @property
    def last_words(self) -> str:
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.complaints)  # colours are for terminals
        lines = [line.strip() for line in plain.splitlines() if line.strip()]
        return "".join(one for one in " / ".join(lines[-3:])[-500:] if one.isprintable())
