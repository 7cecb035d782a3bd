"""Writes a reply as a chat completion: in chunks, and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dragoman.messages.endings import REFUSED
from dragoman.messages.usage import Usage
from dragoman.server.problems import without_paths
from dragoman.server.protocols.openai.errors import error_body
from dragoman.server.protocols.openai.reply import (
    STOPPED,
    CallHanded,
    PartDelta,
    PartOpened,
    Piece,
    ReplyOver,
    TextsWereThoughts,
)

BREAK = "\n\n"  # between what was said before a call of ours and after it


@dataclass(slots=True)
class ChatCompletion:
    """One answer. `chunks` is what it adds to a stream; `whole` what it is in the end."""

    id: str
    model: str
    created: int
    with_usage: bool = False  # the last chunk has it
    over: ReplyOver | None = None
    _texts: list[str] = field(default_factory=list)
    _message: str = ""  # whose text came last
    _begins: int = 0  # where its texts begin
    _calls: list[dict[str, Any]] = field(default_factory=list)

    def begin(self) -> dict[str, Any]:
        return self._chunk({"role": "assistant", "content": ""})

    def chunks(self, piece: Piece) -> Iterator[dict[str, Any]]:
        match piece:
            case PartOpened(kind="text", message=message, continues=continues):
                if message != self._message:
                    self._message, self._begins = message, len(self._texts)
                if self._texts and not continues:
                    yield self._text(BREAK)
            case PartDelta(kind="text", text=text):
                yield self._text(text)
            case TextsWereThoughts(message=message) if message == self._message:
                del self._texts[self._begins :]
            case CallHanded():
                call = _call(piece)
                yield self._chunk({"tool_calls": [{"index": len(self._calls), **call}]})
                self._calls.append(call)
            case ReplyOver(outcome="completed" | "tool_calls"):
                self.over = piece
                yield self._chunk({}, finish_of(piece.finish))
                if self.with_usage:
                    yield {
                        **self._head("chat.completion.chunk"),
                        "choices": [],
                        "usage": usage_of(piece.usage),
                    }
            case ReplyOver():
                self.over = piece
                yield {"error": failure_body(piece)}
            case _:
                pass

    def whole(self) -> dict[str, Any]:
        over = self.over or ReplyOver("completed")
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(self._texts) if self._texts or not self._calls else None,
            "refusal": None,
        }
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "finish_reason": finish_of(over.finish), "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage_of(over.usage)}

    def _text(self, text: str) -> dict[str, Any]:
        self._texts.append(text)
        return self._chunk({"content": text})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
        return chunk | {"usage": None} if self.with_usage else chunk


def _call(handed: CallHanded) -> dict[str, Any]:
    arguments = json.dumps(handed.arguments, ensure_ascii=False)
    function = {"name": handed.tool, "arguments": arguments}
    return {"id": handed.call, "type": "function", "function": function}


def finish_of(finish: str) -> str:
    if finish in ("length", "context"):
        return "length"
    if finish in REFUSED:
        return "content_filter"
    return "tool_calls" if finish == "tool_calls" else "stop"


def usage_of(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def status_of(over: ReplyOver) -> int:
    """The HTTP status of a reply that came to nothing."""
    if over.outcome == "cancelled":
        return 409
    if over.kind in REFUSED:
        return 400
    return {"context_overflow": 400, "rate_limit": 429, STOPPED: 503}.get(over.kind, 502)


def failure_body(over: ReplyOver) -> dict[str, Any]:
    codes = {"context_overflow": "context_length_exceeded", **dict.fromkeys(REFUSED, "content_filter")}
    code = "cancelled" if over.outcome == "cancelled" else codes.get(over.kind, over.kind)
    return error_body(status_of(over), without_paths(over.error), code=code)
