"""Share the encoding steps of all wires: messages made valid to send, call IDs, results, descriptions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from pydantic import JsonValue

from dragoman.messages.boundary import is_address
from dragoman.messages.media import in_words
from dragoman.messages.message import (
    Arguments,
    CallState,
    Error,
    File,
    Part,
    ProviderItem,
    Reasoning,
    Role,
    Summary,
    Text,
    ToolCall,
    ToolResult,
    canonical,
)
from dragoman.messages.request import RequestMessage, ToolSpec
from dragoman.wire.endpoint import IdShape

# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def lower(
    messages: Iterable[RequestMessage],
    *,
    files_apart: bool = False,
    speaks: Callable[[Part], bool] = lambda part: False,
) -> list[RequestMessage]:
    """Return the messages as every wire can send them: no empty or internal parts, and neighbors merged.

    Here an assistant's message is one model request, made of text, reasoning and calls. The results of its
    calls belong right after it. Files it made follow in a user's message, and so do files from its calls if
    the wire cannot put them into a result (`files_apart`). `speaks` selects parts of a reply that can be sent
    without text or calls. A provider's own items are dropped unless it selects them.
    """
    merged: list[RequestMessage] = []
    for message in messages:
        for one in _split(message, files_apart, speaks):
            before = merged[-1] if merged else None
            if before is None or before.role != one.role or _has_calls(before):
                merged.append(one)
            else:
                merged[-1] = RequestMessage(one.role, _joined(before.parts, one.parts))
    return merged


def _split(
    message: RequestMessage, files_apart: bool, speaks: Callable[[Part], bool]
) -> Iterator[RequestMessage]:
    parts: list[Part] = []
    for part in message.parts:
        match part:
            case Text():
                if part.text.strip():
                    parts.append(part)
            case Summary():
                yield from _step(message.role, parts, files_apart, speaks)
                yield RequestMessage("user", (Text(f"[Summary of what came before]\n{part.text}"),))
                parts = []
            case Reasoning() | ToolCall():
                if message.role == "assistant":
                    parts.append(part)
            case ProviderItem():
                if message.role == "assistant" and speaks(part):
                    parts.append(part)
            case File():
                parts.append(part if _can_be_fetched(part) else _in_words(part))
            case Error():
                pass
    yield from _step(message.role, parts, files_apart, speaks)


def _step(
    role: Role, parts: list[Part], files_apart: bool, speaks: Callable[[Part], bool]
) -> Iterator[RequestMessage]:
    if role == "user":
        if parts:
            yield RequestMessage(role, tuple(parts))
        return
    own = tuple(parts)
    if any(isinstance(part, File) for part in parts):
        own = tuple(part for part in parts if not isinstance(part, File) or speaks(part))
    # Reasoning is never sent alone.
    if any(isinstance(part, Text | ToolCall) or speaks(part) for part in own):
        yield RequestMessage(role, own)
    if len(own) < len(parts):
        made = tuple(part for part in parts if isinstance(part, File) and part not in own)
        yield RequestMessage("user", (Text("[Made by the assistant]"), *made))
    for call in own if files_apart else ():
        if isinstance(call, ToolCall) and (files := result_files(call)):
            yield RequestMessage("user", (Text(f"[Result of {call.tool}]"), *files))


def _has_calls(message: RequestMessage) -> bool:
    return any(isinstance(part, ToolCall) for part in message.parts)


def _joined(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    last, next = first[-1], second[0]
    if isinstance(last, Text) and isinstance(next, Text) and not (_is_marked(last) or _is_marked(next)):
        return (*first[:-1], Text(f"{last.text}\n\n{next.text}"), *second[1:])
    return first + second


def _is_marked(text: Text) -> bool:
    return bool(text.citations or text.phase)


def may_replay(part: Reasoning | ProviderItem, wire: str, model: str) -> bool:
    """Return whether reasoning or a provider's item can go back: only to its own model, over its own wire.

    Other models reject or imitate it.
    """
    return part.wire == wire and part.model == model


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
NO_RESULT = "There is no result: the call was not finished."
EMPTY_RESULT = "(no output)"


def result_text(call: ToolCall) -> str:
    """Return the text of a call's result for a model, in any state of the call."""
    result = _visible(call)
    if result is None:
        return NO_RESULT
    text = result.text if result.text.strip() else EMPTY_RESULT
    return f"{text}\n\n{result.note}" if result.note else text


def result_files(call: ToolCall) -> tuple[File, ...]:
    """Return the files of a call's result, if the model may see them."""
    result = _visible(call)
    if result is None or not result.attachments or call.state is CallState.WITHHELD:
        return ()
    return tuple(file for file in result.attachments if _can_be_fetched(file))


def _can_be_fetched(file: File) -> bool:
    """Return whether a file can be fetched.

    An old or tool-made URL could name a path on the provider's disk.
    """
    return file.blob is not None or file.url is None or is_address(file.url)


def _in_words(file: File) -> Text:
    return Text(in_words(replace(file, url=None)))  # The model must not see this URL.


def _visible(call: ToolCall) -> ToolResult | None:
    return call.result if call.state.settled else None  # A result under review is not visible yet.


def safe_name(call: ToolCall) -> str:
    """Return the tool's name, changed if necessary to one that servers accept."""
    return _accepted(call.tool)


@lru_cache(1024)
def _accepted(name: str) -> str:
    return _UNSAFE.sub("_", name)[:64] or "unknown"


def asked_arguments(call: ToolCall) -> Arguments:
    """Return the arguments that the model wrote, not the ones that ran instead: the result's note mentions
    those.

    Argument text that is not valid JSON is sent back inside JSON: many servers would always refuse it
    otherwise.
    """
    asked = call.asked_for
    return {"invalid_json": call.raw} if call.raw is not None and not asked else asked


class CallIds:
    """The IDs of calls in one request: in the form a provider accepts, and each only once."""

    def __init__(self, shape: IdShape = "ours") -> None:
        self._shape = shape
        self._given: set[str] = set()

    def next(self, call: ToolCall) -> str:
        """Return an ID for the call, unique among those returned before."""
        id = self._shaped(call, call.id)
        while id in self._given:
            id = self._shaped(call, f"{id}+")
        self._given.add(id)
        return id

    def _shaped(self, call: ToolCall, origin: str) -> str:
        if self._shape == "kimi":
            return f"functions.{safe_name(call)}:{len(self._given)}"
        if self._shape == "ours" and _PLAIN_ID.fullmatch(origin):
            return origin
        digest = hashlib.sha256(origin.encode()).hexdigest()
        return digest[:9] if self._shape == "mistral" else f"call_{digest[:24]}"


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def description(tool: ToolSpec) -> str:
    """Return a tool's description with its examples: few servers have a separate field for these."""
    examples = "".join(f"\n{canonical(example)}" for example in tool.examples)
    return f"{tool.description}\n\nExamples of arguments:{examples}".strip() if examples else tool.description


# A message for APIs whose contents are blocks: Anthropic's, and Bedrock's Converse.


@dataclass(slots=True)
class RoleBlocks:
    """A turn's blocks. The roles must alternate, and the user's comes first."""

    role: Literal["user", "assistant"]
    blocks: list[dict[str, JsonValue]]
