"""The status line of a chat: who answers, who decides, how full the context is, what it cost, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from dragoman.cli.terminal.text import near_home, one_line
from dragoman.errors import DragomanError
from dragoman.messages.message import Message
from dragoman.messages.usage import Usage
from dragoman.runtime import Runtime


@dataclass(slots=True)
class Status:
    """What the line is made of. `used` is what the last request and its reply had in tokens."""

    model: str
    mode: str
    folder: str
    used: int = 0
    context: int | None = None
    cost: float | None = None

    def line(self, width: int) -> str:
        """As much of it as fits, the most telling first."""
        parts = [one_line(self.model, 60), f"mode {self.mode}"]
        if self.used:
            parts.append(self._fullness())
        if self.cost:
            parts.append(f"${self.cost:.4f}" if self.cost < 1 else f"${self.cost:.2f}")
        parts.append(one_line(self.folder, 80))
        while len(parts) > 1 and len(" · ".join(parts)) > width:
            parts.pop()
        return " · ".join(parts)[:width]

    def _fullness(self) -> str:
        if not self.context:
            return f"{self.used:,} tokens"
        return f"context {100 * self.used / self.context:.0f} % of {_short(self.context)}"

    def add(self, usage: Usage) -> None:
        """A step of the turn is over."""
        self.used = usage.input + usage.output or self.used
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost


def read_status(
    runtime: Runtime,
    settings: dict[str, JsonValue],
    *,
    chosen: str,
    folder: Path | None = None,
    messages: Sequence[Message] = (),
    spent: Usage | None = None,
) -> Status:
    agent = runtime.services.agents.get(str(settings.get("agent")))
    model = str(settings.get("model") or (agent.model if agent is not None else None) or chosen)
    mode = str(settings.get("mode") or (agent.mode if agent is not None else None) or runtime.services.mode)
    last = next((one.usage for one in reversed(messages) if one.usage is not None), None)
    return Status(
        model,
        mode,
        near_home(folder or Path.cwd()),
        used=last.input + last.output if last is not None else 0,
        context=_context_of(runtime, model),
        cost=spent.cost if spent is not None else None,
    )


def _context_of(runtime: Runtime, model: str) -> int | None:
    try:
        return runtime.services.model(model).context
    except DragomanError:
        return None  # a model that is not there any more: whoever sends to it is told


def _short(tokens: int) -> str:
    return f"{tokens // 1000}k" if tokens >= 1000 else str(tokens)
