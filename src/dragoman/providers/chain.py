"""Define a chain of models: if one cannot answer, the next is asked.

`"anthropic/claude-x, openai/gpt-y"` names one wherever a model is named. The library also accepts a list.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from pydantic import JsonValue

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.events import Event, StepModel
from dragoman.messages.message import File, Part
from dragoman.messages.request import Request, ToolSpec
from dragoman.providers.catalog import split_variant
from dragoman.providers.served import ServedModel
from dragoman.sentences import sentence
from dragoman.wire.wire import begins_reply

REST = 60.0  # seconds in which a model that could not answer is asked last
# Errors that another model would also return, or that are handled elsewhere.
_OWN_FAULT = frozenset({"invalid_request", "context_overflow", "filter", "too_large", "too_many_calls"})


def names_in(name: str) -> list[str]:
    """Return the models of a chain by its name. For one model, that one."""
    return [one.strip() for one in name.split(",") if one.strip()] or [name]


def chain_name(names: Sequence[str]) -> str:
    return ", ".join(names)


class ModelChain:
    """Asks one model after the other until one begins to answer. Satisfies `wire.Model`.

    Each is retried as often as it would be alone. A model that could not answer rests: for a minute, the
    others are asked before it. A request that is wrong itself, too long, or stopped by a content filter is
    not passed on. Nothing is asked again once a reply has begun.

    `served` has the models that can be asked, by their names with their variants. `left_out` gives the reason
    for each of the others in `names`. The chain's name contains all of them, so a turn started with it is
    found wherever any of them can be asked.
    """

    def __init__(
        self,
        names: Sequence[str],
        served: Mapping[str, ServedModel],
        left_out: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._served = {name: served[name] for name in names if name in served}
        self.left_out = dict(left_out or {})
        self._skipped = _skipped(names, self._served, self.left_out)
        self.models = models = tuple(self._served.values())
        self.name = chain_name([split_variant(name)[0] for name in names])
        contexts = [model.context for model in models if model.context is not None]
        self.context = min(contexts, default=None)
        self.traits = models[0].traits
        self.type = models[0].type
        if any(model.type != self.type for model in models):
            raise ConfigError(sentence("chain.types", name=self.name))
        self.prompt = models[0].prompt
        self.default_options = models[0].default_options
        self.switches = models[0].switches
        self.variant: Mapping[str, JsonValue] = {}  # each has its own
        self._clock = clock
        self._rests: dict[str, float] = {}  # until when

    def __repr__(self) -> str:
        return f"ModelChain({self.name!r})"

    @property
    def reads_text(self) -> bool:
        return any(model.reads_text for model in self.models)

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        for model in self.models:
            model.check_options(options)

    def check_message(self, parts: Sequence[Part], earlier: Sequence[Sequence[Part]] = ()) -> None:
        self.models[0].check_message(parts, earlier)

    def check_files(self, files: Sequence[File]) -> None:
        self.models[0].check_files(files)

    async def prepare(self, tools: Sequence[ToolSpec]) -> None:
        """Prepare the first model, because it will be asked first."""
        await self.models[0].prepare(tools)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        failed: list[str] = []
        *others, last = self._order()
        for name in others:
            model = self._served[name]
            began = False
            yield [StepModel(model.name, self._reason(failed[-1:], name))]
            try:
                async with aclosing(model.stream(_request_to(request, model), reply)) as batches:
                    async for events in batches:
                        began = began or begins_reply(events)
                        yield events
                return
            except ProviderError as error:
                if began or error.kind in _OWN_FAULT:
                    raise
                self._rests[name] = self._clock() + REST
                failed.append(f"{name} could not answer: {error}")
        model = self._served[last]
        yield [StepModel(model.name, self._reason(failed[-1:], last))]
        try:
            async with aclosing(model.stream(_request_to(request, model), reply)) as batches:
                async for events in batches:
                    yield events
        except ProviderError as error:
            if failed:
                error.hint = ". ".join(filter(None, (error.hint, f"Before it: {'; '.join(failed)}")))
            raise

    def _reason(self, failed: Sequence[str], name: str) -> str:
        """Return why a model is asked: which one before it failed, and which could not be asked at all."""
        return "; ".join(filter(None, (*failed, self._skipped.get(name, ""))))

    def _order(self) -> list[str]:
        """Return the names in order, with resting models at the end."""
        now = self._clock()
        return sorted(self._served, key=lambda name: self._rests.get(name, now) > now)


def _skipped(
    names: Sequence[str], served: Mapping[str, ServedModel], left_out: Mapping[str, str]
) -> dict[str, str]:
    """Return for each model why those right before it are not asked."""
    skipped: dict[str, str] = {}
    before: list[str] = []
    for name in names:
        if name in served:
            skipped.setdefault(name, "; ".join(before))
            before = []
        else:
            before.append(f"{name} is left out: {left_out.get(name, 'it is not here')}")
    return skipped


def _request_to(request: Request, model: ServedModel) -> Request:
    copy = request.copy()
    copy.model = model.name
    return copy
