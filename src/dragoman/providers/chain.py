"""A chain of models: where one cannot answer, the next is asked.

`"anthropic/claude-x, openai/gpt-y"` names one wherever a model is named; the library also takes a list.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.events import Event, StepModel
from dragoman.messages.parts import File
from dragoman.messages.request import Request, ToolSpec
from dragoman.providers.served import ServedModel
from dragoman.wire.wire import begins_reply

REST = 60.0  # seconds in which a model that could not answer is asked last
# What another model would be refused for just the same, or what is mended in another way.
_OWN_FAULT = frozenset({"invalid_request", "context_overflow", "filter", "too_large", "too_many_calls"})


def names_in(name: str) -> list[str]:
    """The models of a chain, as its name has them; of one model, that one."""
    return [one.strip() for one in name.split(",") if one.strip()] or [name]


def chain_name(names: Sequence[str]) -> str:
    return ", ".join(names)


class ModelChain:
    """Asks one model after the other until one begins to answer. Satisfies `wire.Model`.

    Each is tried as often as it would be alone. One that could not answer rests: the others are asked before
    it for a minute. A request that is wrong in itself, or too long, is not sent on, and neither is one that a
    content filter stopped. Nothing is asked again once a reply has begun.
    """

    def __init__(self, models: Sequence[ServedModel], clock: Callable[[], float] = time.monotonic) -> None:
        self.models = tuple(models)
        self.name = chain_name([model.name for model in models])
        contexts = [model.context for model in models if model.context is not None]
        self.context = min(contexts, default=None)
        self.traits = models[0].traits
        self.prompt = models[0].prompt
        self.default_options = models[0].default_options
        self.variant: Mapping[str, JsonValue] = {}  # each has its own
        self._clock = clock
        self._rests: dict[str, float] = {}  # until when

    def __repr__(self) -> str:
        return f"ModelChain({self.name!r})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        for model in self.models:
            model.check_options(options)

    def check_files(self, files: Sequence[File]) -> None:
        self.models[0].check_files(files)

    async def prepare(self, tools: Sequence[ToolSpec]) -> None:
        """The first is the one that will be asked."""
        await self.models[0].prepare(tools)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        reason = ""
        *others, last = self._order()
        for model in others:
            began = False
            yield [StepModel(model.name, reason)]
            try:
                async with aclosing(model.stream(_request_to(request, model), reply)) as batches:
                    async for events in batches:
                        began = began or begins_reply(events)
                        yield events
                return
            except ProviderError as error:
                if began or error.kind in _OWN_FAULT:
                    raise
                self._rests[model.name] = self._clock() + REST
                reason = f"{model.name} could not answer: {error}"
        yield [StepModel(last.name, reason)]
        async with aclosing(last.stream(_request_to(request, last), reply)) as batches:
            async for events in batches:
                yield events

    def _order(self) -> list[ServedModel]:
        """As they are named, those that rest at the end."""
        now = self._clock()
        return sorted(self.models, key=lambda model: self._rests.get(model.name, now) > now)


def _request_to(request: Request, model: ServedModel) -> Request:
    copy = request.copy()
    copy.model = model.name
    return copy
