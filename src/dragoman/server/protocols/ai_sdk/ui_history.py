"""Write a stored chat as `useChat` messages, for a page that is loaded again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from pydantic import JsonValue

from dragoman.messages.message import File, Message, Text
from dragoman.server.protocols.ai_sdk.ui_input import KEPT
from dragoman.server.protocols.ai_sdk.ui_writer import Chunk, UIMessageStream, file_chunk

_STATES = ("tool-output-available", "tool-output-error", "tool-output-denied")


def chat_messages(
    path: Sequence[Message], mark: str, *, live: Collection[str], brought: Collection[str], approvals: bool
) -> Iterator[Chunk]:
    """Yield the messages under the IDs that the client knows. The answer of a `live` turn comes with its
    stream."""
    begun: set[str] = set()  # turns of which a part has already been shown
    before = ""  # the last message of the previous answer
    for (turn, role), group in groupby(path, key=lambda one: (one.turn, one.role)):
        messages = [*group]
        if role == "user":
            yield from (_person(one, mark) for one in messages if one.author is None)
        elif role == "assistant" and turn not in live:
            id = before if turn in begun else turn or messages[0].id
            stream = UIMessageStream(
                turn or "", messages[0].conversation, brought=brought, approvals=approvals, message=id
            )
            told = [stream.begin(), *stream.write_all(stream.reader.tell(messages)), *stream.close()]
            yield _folded(told)
            begun.add(turn or "")
            before = messages[-1].id


def _person(message: Message, mark: str) -> Chunk:
    kept = message.metadata.get(KEPT)
    more: Chunk = dict(kept) if isinstance(kept, dict) else {}
    parts: list[JsonValue] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, File):
            parts.append(file_chunk(part) | ({"filename": part.name} if part.name else {}))
    data = more.pop("data", None)
    parts += data if isinstance(data, list) else []
    return {"id": message.metadata.get(mark) or message.id, "role": "user", "parts": parts, **more}


def _folded(chunks: Iterable[Chunk]) -> Chunk:
    """Return the message that a client builds from these chunks."""
    message: Chunk = {"role": "assistant"}
    parts: list[Chunk] = []
    calls: dict[JsonValue, Chunk] = {}
    for chunk in chunks:
        match chunk:
            case {"type": "start", "messageId": id, "messageMetadata": metadata}:
                message |= {"id": id, "metadata": metadata}
            case {"type": "start-step"}:
                parts.append({"type": "step-start"})
            case {"type": "text-start" | "reasoning-start" as type}:
                parts.append({"type": str(type).removesuffix("-start"), "text": "", "state": "done"})
            case {"type": "text-delta" | "reasoning-delta", "delta": str(text)}:
                parts[-1]["text"] = f"{parts[-1]['text']}{text}"
            case {"type": "tool-input-available" | "tool-input-error", "toolCallId": call, "toolName": tool}:
                calls[call] = _call(chunk, str(tool))
                parts.append(calls[call])
            case {"type": type, "toolCallId": call} if type in _STATES:
                more = {name: value for name, value in chunk.items() if name in ("output", "errorText")}
                if type == "tool-output-denied":
                    more["approval"] = {"id": call, "approved": False}
                calls[call] |= {"state": str(type).removeprefix("tool-"), **more}
            case {"type": str(type)} if type in ("file", "source-url", "source-document"):
                parts.append(chunk)
            case {"type": str(type)} if type.startswith("data-") and not chunk.get("transient"):
                parts.append(chunk)
    return {**message, "parts": [*parts]}


def _call(chunk: Chunk, tool: str) -> Chunk:
    """Return the part of a call: typed by name for a tool of the client, dynamic for any other."""
    named: Chunk = (
        {"type": "dynamic-tool", "toolName": tool} if chunk.get("dynamic") else {"type": f"tool-{tool}"}
    )
    failed = chunk["type"] == "tool-input-error"
    how: Chunk = (
        {"state": "output-error", "errorText": chunk.get("errorText")}
        if failed
        else {"state": "input-available"}
    )
    return {**named, "toolCallId": chunk["toolCallId"], "input": chunk["input"], **how}
