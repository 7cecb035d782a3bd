"""Use the bundled model with the adapter that taught it to call tools (`prompt.py`).

It writes calls, an answer, or a request that the model without the adapter answers, as for free talk. Long
results, and the list of what it can do, are shown unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pydantic import JsonValue

from dragoman.messages.boundary import read_strict_json
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
from dragoman.messages.message import Arguments, CallState, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.providers.local.completion import Prefill
from dragoman.providers.local.exact import (
    is_asked_for,
    restore_copies,
    restore_failure,
    tells_truly,
    typed_expression,
)
from dragoman.providers.local.prompt import CALL, END, SAY, SHOW, TALK, reply_grammar, tools_text
from dragoman.providers.local.transcript import (
    calls_since_request,
    last_request,
    offered_tools,
    render,
    shown_result,
    text_of,
    token_estimate,
    tool_lines,
)
from dragoman.sentences import sentence
from dragoman.wire.lowering import result_text
from dragoman.wire.wire import Model, begins_reply, call_id

# Decode the lines of a reply (`prompt.py`) into our events as they arrive.


@dataclass(slots=True, frozen=True)
class WrittenCall:
    """A call as the model wrote it. Without arguments, it is incomplete."""

    tool: str
    raw: str
    arguments: Arguments | None


class ReplyDecoder:
    """Decodes one reply. An answer streams, unless `whole` requests it in one chunk, to be checked."""

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._text = ""
        self._passed = 0  # characters of the text that were passed on

    @property
    def word(self) -> str:
        """The kind of line with which the reply begins."""
        return next((word for word in (CALL, SAY, SHOW, TALK) if self._text.startswith(word)), "")

    @property
    def answer(self) -> str:
        """The text after an answer's first word."""
        return self._text.removeprefix(self.word).strip()

    @property
    def streamed(self) -> bool:
        return self._passed > 0

    def calls(self) -> list[WrittenCall]:
        return [_read_call(line) for line in self._text.split("\n") if line.startswith(CALL)]

    def feed(self, piece: str) -> Iterator[Event]:
        self._text += piece
        begins = len(SAY) + 1
        if self._whole or self.word != SAY or len(self._text) <= begins:
            return
        if not self._passed:
            self._passed = begins
            yield TextStart()
        if fresh := self._text[self._passed :]:
            self._passed = len(self._text)
            yield TextDelta(fresh)


def text_events(text: str) -> Iterator[Event]:
    yield from (TextStart(), TextDelta(text), TextEnd())


def call_events(calls: Iterable[WrittenCall], reply: str) -> Iterator[Event]:
    for position, call in enumerate(calls):
        id = call_id(reply, position)
        yield CallInputStart(id, call.tool)
        yield CallInputDelta(id, call.raw)
        if call.arguments is None:
            yield CallInputEnd(id, call.tool, None, call.raw)
        else:
            yield CallInputEnd(id, call.tool, call.arguments)


def _read_call(line: str) -> WrittenCall:
    tool, _, raw = line.removeprefix(CALL).strip().partition(" ")
    try:
        arguments = read_strict_json(raw)
    except ValueError:  # incomplete
        return WrittenCall(tool, raw, None)
    return WrittenCall(tool, raw, arguments if isinstance(arguments, dict) else None)


ANSWER = 256  # tokens of an answer, unless the request sets them
CALLS = 600  # tokens of calls and their arguments
CUT = sentence("local.cut", most=ANSWER)
UNSURE = sentence("local.unsure")
LONGEST_SHOWN = 4000  # characters of results that become the answer
SYSTEM = "You are a small, friendly assistant. Answer in one or two short sentences."
LONGEST_SYSTEM = 600  # characters: it cannot follow a longer one in free talk
HISTORY = 1200  # tokens of the conversation that free talk includes
TRAINED_CONTEXT = 4096  # tokens of each slot
WORK, FREE_TALK = range(2)  # Each kind of prompt has a separate slot, in which its start is cached.
SLOTS = 2
WITHOUT_ADAPTER: JsonValue = [{"id": 0, "scale": 0.0}]


class TrainedModel:
    """A small model with two interfaces: `chat` with its template, `complete` with a bare prompt.

    Satisfies `wire.Model`.
    """

    def __init__(
        self,
        chat: Model,
        complete: Model,
        prefill: Prefill | None = None,
        *,
        today: Callable[[], date] = date.today,
    ) -> None:
        self.name = chat.name
        self.context = chat.context
        self.variant: Mapping[str, JsonValue] = {}
        self._chat = chat
        self._complete = complete
        self._prefill = prefill
        self._today = today

    def __repr__(self) -> str:
        return f"TrainedModel({self._chat!r})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        self._chat.check_options(options)

    async def prepare(self, tools: Sequence[ToolSpec]) -> None:
        """Start the server and let it read these tools, before the first request."""
        offered = offered_tools(Request(self.name, (), tools=tuple(tools)))
        if self._prefill is not None and offered:
            await self._prefill.load(tools_text(tool_lines(offered)))

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        if not request.tools or not last_request(request):
            events = self._talk(request, reply)
        else:
            events = self._work(request, reply)
        async with aclosing(events) as batches:
            async for batch in batches:
                yield batch

    # ── calls, and answers about them ─────────────────────────────────────────────────────────────

    async def _work(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        await self.prepare(request.tools)
        done = calls_since_request(request)
        decoder = ReplyDecoder(whole=bool(done))
        end = MessageEnd("stop")
        async with aclosing(self._complete.stream(self._question(request), reply)) as batches:
            async for batch in batches:
                if not begins_reply(batch):
                    yield batch  # a retry
                for event in batch:
                    if isinstance(event, TextDelta):
                        if said := list(decoder.feed(event.text)):
                            yield said
                    elif isinstance(event, MessageEnd):
                        end = event
        if decoder.word != TALK:
            yield [*self._rest(request, decoder, done, reply), *_ending(decoder, end, request)]
            return
        async with aclosing(self._talk(request, reply, end.usage)) as batches:
            async for batch in batches:
                yield batch

    def _question(self, request: Request) -> Request:
        """Return the prompt, with the grammar that its choice of tools allows."""
        offered = offered_tools(request)
        choice = request.tool_choice or "auto"
        words: Sequence[str] = (SAY, SHOW, TALK)
        if choice in {tool.name for tool in offered}:
            offered, words = [tool for tool in offered if tool.name == choice], ()
        elif choice == "required":
            words = ()
        elif request.options.get("response_schema") is not None:
            words = (TALK,)  # The adapter was not trained for answers in that form.
        grammar = reply_grammar(
            offered, calls=choice != "none", words=words, typed=typed_expression(last_request(request))
        )
        return Request(
            self.name,
            (RequestMessage("user", (Text(render(request, self._today())),)),),
            extra={
                "temperature": 0,
                "max_tokens": request.options.get("max_tokens") or CALLS,
                "stop": [END],
                "grammar": grammar,
                "id_slot": WORK,
            },
        )

    def _rest(
        self, request: Request, decoder: ReplyDecoder, done: Sequence[ToolCall], reply: str
    ) -> Iterator[Event]:
        """Yield the events of a reply that were not streamed."""
        if decoder.streamed:
            yield TextEnd()
        elif decoder.word == CALL:
            calls, waiting = self._calls(request, decoder)
            made = {(call.tool, str(call.arguments)) for call in done}
            # The model has made all these calls and would repeat them forever: end with their results.
            if all((call.tool, str(call.arguments)) in made for call in calls):
                yield from text_events(_results(done))
                return
            if not all(is_asked_for(call.tool, call.arguments or {}, _said(request), done) for call in calls):
                results = f"{_results(done)}\n\n" if done else ""
                yield from text_events(f"{results}{UNSURE}")
                return
            yield from call_events(calls, reply)
            yield from (Notice(sentence("local.waits", tool=tool), "waits") for tool in waiting)
        elif decoder.word == SHOW and not done:
            yield from text_events(f"{decoder.answer}\n\n{_abilities(request.tools)}")
        elif decoder.word == SHOW:
            yield from text_events(f"{decoder.answer}\n\n{_results(done)}")
        else:
            answer = _with_failures(decoder.answer, done)
            told = not done or (answer and tells_truly(answer, _everything(request)))
            yield from text_events(answer if told else _results(done))

    def _calls(self, request: Request, decoder: ReplyDecoder) -> tuple[list[WrittenCall], list[str]]:
        """Return the calls of a reply, with exact copies, and the tools whose calls have to wait.

        A repeated call counts once. A call whose required text is still empty waits for the others of its
        reply, which may have to find that text first.
        """
        read, specs = _everything(request), {tool.name: tool.parameters for tool in request.tools}
        calls = list({(one.tool, one.raw): one for one in decoder.calls()}.values())
        now = [call for call in calls if not _lacks_text(call, specs.get(call.tool, {}))] or calls
        exact = [
            call if call.arguments is None else replace(call, arguments=restore_copies(call.arguments, read))
            for call in now
        ]
        return exact, [call.tool for call in calls if call not in now]

    # ── free talk ─────────────────────────────────────────────────────────────────────────────────

    async def _talk(
        self, request: Request, reply: str, used: Usage | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        limited = request.options.get("max_tokens") is not None
        system = request.system if 0 < len(request.system) <= LONGEST_SYSTEM else SYSTEM
        shortened = replace(
            request,
            messages=_recent(request.messages),
            system=system,
            tools=(),
            tool_choice=None,
            options={"temperature": 0.2, "max_tokens": ANSWER, **request.options},
            extra={"repeat_penalty": 1.1, "id_slot": FREE_TALK, "lora": WITHOUT_ADAPTER, **request.extra},
        )
        async with aclosing(self._chat.stream(shortened, reply)) as batches:
            async for batch in batches:
                *others, last = batch
                if not isinstance(last, MessageEnd):
                    yield batch
                    continue
                last = replace(last, usage=(used or Usage()) + last.usage)
                if last.finish == "length" and not limited:
                    others, last = (
                        [*others, Notice(CUT, "cut")],
                        replace(last, finish="stop"),
                    )  # a longer answer would not be better
                yield (*others, last)


def _lacks_text(call: WrittenCall, schema: Mapping[str, Any]) -> bool:
    arguments = call.arguments or {}
    return any(arguments.get(name) == "" for name in schema.get("required") or ())


def _ending(decoder: ReplyDecoder, end: MessageEnd, request: Request) -> Iterator[Event]:
    if decoder.word == CALL and end.finish != "length":
        yield replace(end, finish="tool_calls")
    elif decoder.word != CALL and end.finish == "length" and request.options.get("max_tokens") is None:
        yield from (Notice(CUT, "cut"), replace(end, finish="stop"))
    else:
        yield end


def _abilities(tools: Sequence[ToolSpec]) -> str:
    """Return what the tools can do, one line each."""
    lines = []
    for tool in tools:
        about = " ".join(tool.description.split()).partition(". ")[0].rstrip(".")
        lines.append(f"- {tool.name}: {about}" if about else f"- {tool.name}")
    return "\n".join(lines)


def _results(calls: Sequence[ToolCall]) -> str:
    """Return the results unchanged. If there are several, each with the name of its tool."""
    alone = len(calls) == 1
    text = "\n\n".join(
        shown_result(call)
        if alone or call.state is not CallState.COMPLETED
        else f"{call.tool}: {shown_result(call)}"
        for call in calls
    )
    more = len(text) - LONGEST_SHOWN
    return f"{text[:LONGEST_SHOWN]}\n[… {more} more characters are in the result …]" if more > 0 else text


def _with_failures(answer: str, calls: Sequence[ToolCall]) -> str:
    """Return the answer, with the failures it reports in their exact words."""
    for call in calls:
        if call.state is not CallState.COMPLETED:
            answer = restore_failure(answer, result_text(call))
    return answer


def _said(request: Request) -> str:
    """Return what the user wrote."""
    return "\n".join(text_of(sent) for sent in request.messages if sent.role == "user")


def _everything(request: Request) -> str:
    """Return all that the model could read: the user's text, the tools' arguments and their results."""
    texts = [text_of(sent) for sent in request.messages]
    calls = [part for sent in request.messages for part in sent.parts if isinstance(part, ToolCall)]
    texts += [f"{_values(call.arguments)} {shown_result(call)}" for call in calls if call.state.settled]
    return "\n".join([*texts, request.system])


def _values(arguments: Arguments) -> str:
    return " ".join(str(value) for value in arguments.values())


def _recent(messages: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """Return as much of the end of a conversation as fits, as text only."""
    recent: list[RequestMessage] = []
    room = HISTORY
    for sent in reversed(messages):
        text = text_of(sent)
        if recent and token_estimate(text) > room:
            break
        room -= token_estimate(text)
        if text:
            recent.append(RequestMessage(sent.role, (Text(text[-4 * HISTORY :]),)))
    return tuple(reversed(recent))
