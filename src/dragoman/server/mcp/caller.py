"""Provide a model that makes exactly the call it is given, so that an external call is a turn like any other.

The usual rules decide about the call and users are asked to approve it. The store keeps it, its file changes
can be undone, and it survives a crash.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages import events as e
from dragoman.messages.media import ModelType
from dragoman.messages.message import Arguments, Text, ToolCall
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.wire.files.attachments import BlobReader, UsesBlobs
from dragoman.wire.wire import Model, call_id

CALLER = "mcp/caller"  # the model of conversations in which another program calls tools
_OVER = "The result went to the program that called."


def call_text(tool: str, arguments: Arguments) -> str:
    """Return the message that has a call made: a line for users, then the call as JSON."""
    call = json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=False)
    return f"A program calls {tool}:\n{call}"


class CallerModel:
    """A model that reads the call from the last user message. It has no other state, so it resumes after a
    restart."""

    name = CALLER
    context: int | None = None
    variant: Mapping[str, JsonValue] = {}

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        """Accept all options and ignore them."""

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[e.Event], None]:
        last = max(place for place, message in enumerate(request.messages) if message.role == "user")
        made = any(
            isinstance(part, ToolCall) for message in request.messages[last:] for part in message.parts
        )
        if made:
            yield (e.TextStart(), e.TextDelta(_OVER), e.TextEnd(), e.MessageEnd("stop", Usage(cost=0.0)))
            return
        text = "".join(part.text for part in request.messages[last].parts if isinstance(part, Text))
        try:
            call = json.loads(text.partition("\n")[2])
            tool, arguments = str(call["tool"]), dict(call["arguments"])
        except (ValueError, KeyError, TypeError) as error:
            raise ProviderError("Only programs call tools here. You cannot send a message.") from error
        id = call_id(reply, 0)
        yield (e.CallInputStart(id, tool), e.CallInputEnd(id, tool, arguments))
        yield (e.MessageEnd("tool_calls", Usage(cost=0.0)),)


class WithCaller:
    """All models of the runtime, and the one that makes calls."""

    def __init__(self, models: Callable[[str | None], Model]) -> None:
        self._models = models

    def __call__(self, name: str | None = None) -> Model:
        return CallerModel() if name == CALLER else self._models(name)

    def types(self) -> set[ModelType]:
        # A runtime with a single model has no types.
        find: Callable[[], set[ModelType]] = getattr(self._models, "types", set)
        return find()

    def of_type(self, type: ModelType) -> list[str]:
        find: Callable[[ModelType], list[str]] = getattr(self._models, "of_type", lambda _: [])
        return find(type)

    def use_blobs(self, blobs: BlobReader) -> None:
        models: object = self._models
        if isinstance(models, UsesBlobs):
            models.use_blobs(blobs)
