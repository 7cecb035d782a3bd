"""Writes a reply as a response of the Responses API: as a stream of events, and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dragoman.messages.endings import REFUSED
from dragoman.messages.message import Citation
from dragoman.messages.usage import Usage
from dragoman.server.problems import without_paths
from dragoman.server.protocols.openai.reply import (
    CallHanded,
    PartClosed,
    PartDelta,
    PartOpened,
    Piece,
    ReplyOver,
    TextsWereThoughts,
)

_CODES = {"rate_limit": "rate_limit_exceeded", **dict.fromkeys(REFUSED, "invalid_prompt")}
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class ResponseObject:
    """One response. `head` is what it holds besides output, status and usage."""

    head: dict[str, Any]
    output: list[dict[str, Any]] = field(default_factory=list)
    over: ReplyOver | None = None
    number: int = 0  # of the next event
    _text: list[str] = field(default_factory=list)

    def begin(self) -> Iterator[dict[str, Any]]:
        yield self._event("response.created", response=self.whole())
        yield self._event("response.in_progress", response=self.whole())

    def events(self, piece: Piece) -> Iterator[dict[str, Any]]:
        match piece:
            case PartOpened(kind="text", message=message):
                yield from self._open(_message(self._id("msg", message), "in_progress"))
                part = {"type": "output_text", "text": "", "annotations": []}
                yield self._part("response.content_part.added", content_index=0, part=part)
            case PartOpened(message=message):
                yield from self._open(_reasoning(self._id("rs", message), "in_progress"))
                part = {"type": "summary_text", "text": ""}
                yield self._part("response.reasoning_summary_part.added", summary_index=0, part=part)
            case PartDelta(kind="text", text=text):
                self._text.append(text)
                yield self._part("response.output_text.delta", content_index=0, delta=text, logprobs=[])
            case PartDelta(text=text):
                self._text.append(text)
                yield self._part("response.reasoning_summary_text.delta", summary_index=0, delta=text)
            case PartClosed(kind="text", citations=citations):
                yield from self._close_text("".join(self._text), citations)
            case PartClosed():
                yield from self._close_reasoning("".join(self._text))
            case TextsWereThoughts(message=message):
                self._make_thoughts(f"msg_{_suffix(message)}_")
            case CallHanded():
                yield from self._hand(piece)
            case ReplyOver():
                self.over = piece
                yield self._event(f"response.{_ending(self.status)}", response=self.whole())

    @property
    def status(self) -> str:
        match self.over:
            case None:
                return "in_progress"
            case ReplyOver(outcome="error"):
                return "failed"
            case ReplyOver(outcome="cancelled"):
                return "cancelled"
            case ReplyOver(finish=finish):
                return "incomplete" if _why_incomplete(finish) else "completed"

    def whole(self) -> dict[str, Any]:
        why = _why_incomplete(self.over.finish) if self.status == "incomplete" and self.over else None
        return {
            **self.head,
            "object": "response",
            "status": self.status,
            "error": self._error(),
            "incomplete_details": {"reason": why} if why else None,
            "output": [*self.output],
            "usage": _usage(self.over.usage) if self.over is not None else None,
        }

    def _error(self) -> dict[str, Any] | None:
        if self.over is None or self.over.outcome != "error":
            return None
        return {"code": _CODES.get(self.over.kind, "server_error"), "message": without_paths(self.over.error)}

    # ── items ─────────────────────────────────────────────────────────────────────────────────────

    def _open(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._text.clear()
        self.output.append(item)
        yield self._event("response.output_item.added", output_index=len(self.output) - 1, item=item)

    def _close(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.output[-1] = item
        yield self._event("response.output_item.done", output_index=len(self.output) - 1, item=item)

    def _close_text(self, text: str, citations: tuple[Citation, ...]) -> Iterator[dict[str, Any]]:
        item = _message(self.output[-1]["id"], "completed", text, citations)
        yield self._part("response.output_text.done", content_index=0, text=text, logprobs=[])
        yield self._part("response.content_part.done", content_index=0, part=item["content"][0])
        yield from self._close(item)

    def _close_reasoning(self, text: str) -> Iterator[dict[str, Any]]:
        item = _reasoning(self.output[-1]["id"], "completed", text)
        yield self._part("response.reasoning_summary_text.done", summary_index=0, text=text)
        yield self._part("response.reasoning_summary_part.done", summary_index=0, part=item["summary"][0])
        yield from self._close(item)

    def _make_thoughts(self, ids: str) -> None:
        """Items that were told of as messages: there is no event for it, and the whole response is right."""
        for at, item in enumerate(self.output):
            if item["id"].startswith(ids):
                text = item["content"][0]["text"]
                self.output[at] = _reasoning(f"rs{item['id'].removeprefix('msg')}", "completed", text)

    def _hand(self, handed: CallHanded) -> Iterator[dict[str, Any]]:
        arguments = json.dumps(handed.arguments, ensure_ascii=False)
        item = {
            "type": "function_call",
            "id": f"fc_{_suffix(handed.call)}",
            "call_id": handed.call,
            "name": handed.tool,
            "arguments": "",
            "status": "in_progress",
        }
        yield from self._open(item)
        yield self._part("response.function_call_arguments.delta", delta=arguments)
        yield self._part("response.function_call_arguments.done", name=handed.tool, arguments=arguments)
        yield from self._close({**item, "arguments": arguments, "status": "completed"})

    def _id(self, noun: str, message: str) -> str:
        return f"{noun}_{_suffix(message)}_{len(self.output)}"

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def _part(self, type: str, **fields: Any) -> dict[str, Any]:
        place = len(self.output) - 1
        return self._event(type, item_id=self.output[place]["id"], output_index=place, **fields)

    def _event(self, type: str, **fields: Any) -> dict[str, Any]:
        event = {"type": type, "sequence_number": self.number, **fields}
        self.number += 1
        return event


def _ending(status: str) -> str:
    """The event that ends a stream. For one that was cancelled there is none of its own."""
    return status if status in ("completed", "failed") else "incomplete"


def _why_incomplete(finish: str) -> str | None:
    if finish in ("length", "context"):
        return "max_output_tokens"
    return "content_filter" if finish in REFUSED else None


def _message(
    id: str, status: str, text: str | None = None, citations: tuple[Citation, ...] = ()
) -> dict[str, Any]:
    sources = [_annotation(source) for source in citations if _is_whole(source)]
    part = {"type": "output_text", "text": text, "annotations": sources, "logprobs": []}
    content = [part] if text is not None else []
    return {"type": "message", "id": id, "role": "assistant", "status": status, "content": content}


def _reasoning(id: str, status: str, text: str | None = None) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text is not None else []
    return {"type": "reasoning", "id": id, "summary": summary, "status": status}


def _is_whole(source: Citation) -> bool:
    """Whether all that an annotation has to say is known."""
    return source.url is not None and source.start is not None and source.end is not None


def _annotation(source: Citation) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url": source.url,
        "title": source.title or "",
        "start_index": source.start,
        "end_index": source.end,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def _suffix(id: str) -> str:
    return id.partition("_")[2] or id
