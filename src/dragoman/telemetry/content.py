"""Contents for spans, where somebody asked for them: messages and arguments, without what is secret."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from dragoman.messages.message import Message
from dragoman.messages.parts import Part, ToolCall
from dragoman.messages.request import RequestMessage
from dragoman.redaction import redact_text, redact_value, spellings


class Contents:
    """Writes contents as the conventions want them. `secrets` are texts that nobody may see."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Three levels: of a result that is JSON itself, what it holds is written as JSON once more.
        spelled = {one for secret in filter(None, secrets) for one in spellings(secret, 3)}
        self._secrets = sorted(spelled, key=len, reverse=True)

    def messages(self, messages: Sequence[Message | RequestMessage]) -> str:
        return self._text([{"role": one.role, "parts": _parts(one.parts)} for one in messages])

    def output(self, message: Message) -> str:
        reply: JsonValue = {
            "role": "assistant",
            "parts": _parts(message.parts),
            "finish_reason": message.finish or "",
        }
        return self._text([reply])

    def arguments(self, call: ToolCall) -> str:
        return self._text(dict(call.arguments))

    def result(self, call: ToolCall) -> str:
        return self._hidden(call.result.text if call.result is not None else "")

    def _text(self, value: JsonValue) -> str:
        return self._hidden(json.dumps(redact_value(value), ensure_ascii=False))

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:  # the longest first: one may be inside another
            text = text.replace(secret, "‹private›")
        return redact_text(text)


def _parts(parts: Sequence[Part]) -> list[JsonValue]:
    written: list[JsonValue] = []
    for part in parts:
        if part.type == "text":
            written.append({"type": "text", "content": part.text})
        elif isinstance(part, ToolCall):
            written.append(
                {"type": "tool_call", "id": part.id, "name": part.tool, "arguments": dict(part.arguments)}
            )
            if part.result is not None:
                written.append({"type": "tool_call_response", "id": part.id, "response": part.result.text})
    return written
