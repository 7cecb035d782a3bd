"""`GuidedModel`: tool calls for a model so small that it needs examples and a grammar to make one.

It is asked twice: which tool, a choice among single tokens after examples; then the arguments, held to a
grammar. What a tool found is the answer as it stands: in its own words the model would get it wrong.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.messages.events import (
    CallInputDelta,
    CallInputEnd,
    CallInputStart,
    Event,
    MessageEnd,
    Notice,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.parts import CallState, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.providers.local.examples import CHAT, Nearness, ToolExample, chats, examples_of
from dragoman.providers.local.grammar import arguments_grammar
from dragoman.providers.local.labels import Label, Tokenize, labels
from dragoman.wire.lowering import result_text
from dragoman.wire.wire import Model, begins_reply, call_id

NEAREST = 6  # examples that are like the request, beside the first of each tool
ASKED = 1500  # characters of a request that are looked at
HISTORY = 4000  # characters of a conversation that a chat takes along
ANSWER = 256  # tokens of an answer, unless the request says otherwise
CUT = f"the answer was ended after {ANSWER} tokens: `max_tokens` sets another limit"
ARGUMENTS = 400  # tokens
LONGEST_RESULT = 4000  # characters of a result that become the answer
SYSTEM = "You are a small, friendly assistant. Answer in one or two short sentences."
LONGEST_SYSTEM = 600  # characters: a longer one it cannot follow
GUIDED_CONTEXT = 2560  # tokens: enough for what is shown of a conversation, and quick
CHOICE, ARGS, TALK = range(3)  # each kind of prompt in a slot of its own, where its beginning is known
SLOTS = 3
BIAS = 100.0  # lifts the labels above every other token, and preserves their order


class GuidedModel:
    """A small model behind two ways to ask it: `chat` with its template, `complete` with a bare prompt.

    Satisfies `wire.Model`. `tokenize` gives the model's tokens for a text.
    """

    def __init__(self, chat: Model, complete: Model, tokenize: Tokenize) -> None:
        self.name = chat.name
        self.context = chat.context
        self._chat = chat
        self._complete = complete
        self._tokenize = tokenize
        self.variant: Mapping[str, JsonValue] = {}
        self._labels: dict[tuple[str, ...], dict[str, Label]] = {}

    def __repr__(self) -> str:
        return f"GuidedModel({self._chat!r})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        self._chat.check_options(options)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        if found := _results(request):
            yield (TextStart(), TextDelta(found), TextEnd(), MessageEnd("stop"))
            return
        asked = _asked(request)
        choice = _Choice()
        async with aclosing(self._choose(request, asked, reply, choice)) as retries:
            async for batch in retries:
                yield batch
        tool, used = choice.tool, choice.usage
        events = self._answer(request, reply) if tool is None else self._call(tool, asked, reply)
        async with aclosing(events) as batches:
            async for batch in batches:
                *others, last = batch
                if isinstance(last, MessageEnd):
                    yield (*others, replace(last, usage=used + last.usage))
                else:
                    yield batch

    # ── which tool ────────────────────────────────────────────────────────────────────────────────

    async def _choose(
        self, request: Request, asked: str, reply: str, choice: _Choice
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Fill in the choice. What is yielded are retries alone."""
        tools = {tool.name: tool for tool in request.tools}
        wanted = request.tool_choice or "auto"
        if not tools or not asked or wanted == "none":
            return
        if wanted in tools:
            choice.tool = tools[wanted]
            return
        names = await self._labels_for(request.tools)
        open = {name: label for name, label in names.items() if name != CHAT or wanted != "required"}
        bias: list[JsonValue] = [[label.token, BIAS] for label in open.values()]
        completion = _Completion()
        asking = self._complete_prompt(
            _choice_prompt(request.tools, asked, names),
            reply,
            {"logit_bias": bias, "max_tokens": 1, "id_slot": CHOICE},
            completion,
        )
        async with aclosing(asking) as retries:
            async for batch in retries:
                yield batch
        chosen = next((name for name, label in open.items() if label.word == completion.text.strip()), CHAT)
        choice.tool, choice.usage = tools.get(chosen), completion.usage

    async def _labels_for(self, tools: Sequence[ToolSpec]) -> dict[str, Label]:
        key = tuple(tool.name for tool in tools)
        if key not in self._labels:
            self._labels[key] = await labels(tools, self._tokenize)
        return self._labels[key]

    # ── its arguments ─────────────────────────────────────────────────────────────────────────────

    async def _call(self, tool: ToolSpec, asked: str, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        id = call_id(reply, 0)
        yield (CallInputStart(id, tool.name),)
        completion = _Completion()
        if tool.parameters.get("properties"):
            examples = [one for one in examples_of(tool) if one.arguments is not None]
            grammar = arguments_grammar(tool.parameters, examples, asked)
            asking = self._complete_prompt(
                _arguments_prompt(tool, examples, asked),
                reply,
                {"grammar": grammar, "max_tokens": ARGUMENTS, "id_slot": ARGS},
                completion,
            )
            async with aclosing(asking) as retries:
                async for batch in retries:
                    yield batch
        else:
            completion.text = "{}"
        raw, usage = completion.text.strip(), completion.usage
        yield (CallInputDelta(id, raw),)
        try:
            arguments = from_json(raw)
        except ValueError:  # it did not come to an end
            yield (CallInputEnd(id, tool.name, None, raw), MessageEnd("length", usage))
            return
        yield (CallInputEnd(id, tool.name, arguments), MessageEnd("tool_calls", usage))

    # ── an answer ─────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        limited = request.options.get("max_tokens") is not None
        system = request.system if 0 < len(request.system) <= LONGEST_SYSTEM else SYSTEM
        shortened = replace(
            request,
            messages=_recent(request.messages),
            system=system,
            tools=(),
            tool_choice=None,
            options={"temperature": 0.2, "max_tokens": ANSWER, **request.options},
            extra={"repeat_penalty": 1.1, "id_slot": TALK, **request.extra},
        )
        async with aclosing(self._chat.stream(shortened, reply)) as batches:
            async for batch in batches:
                *others, last = batch
                if isinstance(last, MessageEnd) and last.finish == "length" and not limited:
                    yield (*others, Notice(CUT, "cut"), replace(last, finish="stop"))  # more is not better
                else:
                    yield batch

    async def _complete_prompt(
        self, prompt: str, reply: str, extra: dict[str, JsonValue], completion: _Completion
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Fill in the completion. What is yielded are retries alone: the text is not for display."""
        asked = Request(
            self.name, (RequestMessage("user", (Text(prompt),)),), extra={"temperature": 0, **extra}
        )
        async with aclosing(self._complete.stream(asked, reply)) as batches:
            async for batch in batches:
                if not begins_reply(batch):
                    yield batch
                for event in batch:
                    if isinstance(event, TextDelta):
                        completion.text += event.text
                    elif isinstance(event, MessageEnd):
                        completion.usage = event.usage


@dataclass(slots=True)
class _Completion:
    text: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class _Choice:
    tool: ToolSpec | None = None  # None: no tool is right
    usage: Usage = field(default_factory=Usage)


# ── what it is shown ──────────────────────────────────────────────────────────────────────────────


def _choice_prompt(tools: Sequence[ToolSpec], asked: str, names: dict[str, Label]) -> str:
    """One example of each tool, always the same, so that the server knows them; then the nearest of all."""
    groups = [examples_of(tool) for tool in tools if tool.name in names] + [chats()]
    every = [one for group in groups for one in group]
    order = [group[0] for group in groups] + Nearness(every).nearest(asked, NEAREST)
    lines = [f"Request: {one.request}\nAction: {names[one.tool].word}\n\n" for one in order]
    return f"{''.join(lines)}Request: {asked}\nAction:"


def _arguments_prompt(tool: ToolSpec, examples: Sequence[ToolExample], asked: str) -> str:
    """The tool's examples, or its description."""
    lines = [
        f"Request: {one.request}\nArguments: {json.dumps(one.arguments, ensure_ascii=False)}\n\n"
        for one in Nearness(examples).nearest(asked, NEAREST)
    ]
    head = "".join(lines) or f"{tool.description[:500]}\nParameters: {json.dumps(tool.parameters)[:1000]}\n\n"
    return f"{head}Request: {asked}\nArguments:"


def _asked(request: Request) -> str:
    """The last text of the person, on one line."""
    for message in reversed(request.messages):
        if message.role == "user" and (text := _text(message)):
            return " ".join(text.split())[-ASKED:]
    return ""


def _recent(messages: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """As much of the end of a conversation as fits, in words alone."""
    recent: list[RequestMessage] = []
    room = HISTORY
    for message in reversed(messages):
        text = _text(message)
        if recent and len(text) > room:
            break
        room -= len(text)
        if text:
            recent.append(RequestMessage(message.role, (Text(text[-HISTORY:]),)))
    return tuple(reversed(recent))


def _text(message: RequestMessage) -> str:
    return "\n\n".join(part.text for part in message.parts if isinstance(part, Text) and part.text.strip())


# ── results ──────────────────────────────────────────────────────────────────────────────────────


def _results(request: Request) -> str:
    """The results of the calls with which the messages end, as a text; "" where they end otherwise."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant":
        return ""
    calls = [part for part in last.parts if isinstance(part, ToolCall) and part.state.settled]
    return "\n\n".join(_describe_result(call, alone=len(calls) == 1) for call in calls)


def _describe_result(call: ToolCall, alone: bool) -> str:
    # A note is for a model that reads, not for the person to whom this one repeats its results.
    told = call if call.result is None else replace(call, result=replace(call.result, note=None))
    text = result_text(told)
    more = len(text) - LONGEST_RESULT
    text = f"{text[:LONGEST_RESULT]}\n[… {more} more characters are in the result …]" if more > 0 else text
    if call.state is CallState.COMPLETED:
        return text if alone else f"{call.tool}: {text}"
    return f"{call.tool} brought no result ({call.state.value}): {text}"
