"""A workbench for one tool: a context that writes down what the tool did, and a way to run it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments, File, Message, Text, ToolCall
from dragoman.messages.request import Request
from dragoman.tools.execute import Outcome, Permit, execute
from dragoman.tools.tool import Tool, ToolContext


@dataclass
class Bench:
    """A context for a tool that records reports and requests and gives prepared answers."""

    answers: list[JsonValue] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    workspace: Path | None = None
    thinks_for: float = 0.0  # how long the person takes to answer
    files: dict[str, bytes] = field(default_factory=dict)  # files that the tool attached
    permits: Callable[[str], bool] = lambda _: True
    required: list[str] = field(default_factory=list)
    progress: list[JsonValue] = field(default_factory=list)
    cancelled: bool = False
    questions: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def context(self) -> ToolContext:
        return ToolContext(
            conversation="conv_1",
            turn="turn_1",
            message="msg_1",
            call="call_1",
            cancelled=lambda: self.cancelled,
            ask=self._ask,
            progress=self.progress.append,
            read_output=self._read_output,
            put_file=self._put_file,
            permits=self.permits,
            require_permission=self._require_permission,
            complete=self._complete,
            workspace=self.workspace,
        )

    async def run(self, tool: Tool, arguments: Arguments | None = None) -> Outcome:
        call = ToolCall("call_1", tool.name, arguments or {})
        return await asyncio.create_task(execute(tool, call, Permit(call.hash, "rule"), self.context()))

    async def _ask(
        self,
        text: str,
        choices: Sequence[str] = (),
        schema: dict[str, JsonValue] | None = None,
        *,
        free: bool = False,
    ) -> JsonValue:
        self.questions.append((text, tuple(choices)))
        await asyncio.sleep(self.thinks_for)
        return self.answers.pop(0)

    async def _complete(self, request: Request) -> Message:
        """A model that repeats what it hears last."""
        (said,) = request.messages[-1].parts
        assert isinstance(said, Text)
        text = Text(f"you said {said.text!r}, at most {request.options['max_tokens']}")
        return Message("msg_2", "conv_1", None, "assistant", (text,))

    async def _require_permission(self, pattern: str, question: str = "") -> None:
        self.required.append(pattern)
        if not self.permits(pattern):
            raise ToolFailed(f"{pattern} is not permitted")

    async def _put_file(self, data: bytes, media_type: str, name: str | None = None) -> File:
        self.files[digest := hashlib.sha256(data).hexdigest()] = data
        return File(media_type, blob=digest, name=name, size=len(data))

    async def _read_output(self, call: str) -> str:
        if call not in self.outputs:
            raise ToolFailed(f"Unknown call {call!r}")
        return self.outputs[call]


async def run(tool: Tool, **arguments: JsonValue) -> Outcome:
    return await Bench().run(tool, arguments)


async def text_of(tool: Tool, **arguments: JsonValue) -> str:
    return (await run(tool, **arguments)).result.text
