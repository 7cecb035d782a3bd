"""Usage that a provider reports for a reply counts once, also if the reply never ended (T12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman import Plugin, ProviderError, Runtime, ToolContext, TurnView, tool
from dragoman.messages.events import Event, StepRetry, TextDelta
from dragoman.messages.fold import Appending
from dragoman.messages.message import CallState, Text
from dragoman.messages.request import LostReply, Request, RequestMessage
from dragoman.messages.usage import Spending, Usage
from dragoman.providers.catalog import Provider, Traits, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.served import ServedModel
from dragoman.providers.sign_in import Keys
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.scripted import calls, collect_reply, says
from tests.loopback import Loopback, Script, Stream, loopback, sse
from tests.patience import PATIENCE
from tests.runtimes import calls_of, runtime_with

pytestmark = pytest.mark.slow

COUNTED = Usage(90, 10, cost=0.0)  # on this machine it costs nothing

_STARTS = {"type": "message_start", "message": {"usage": {"input_tokens": 90, "output_tokens": 10}}}
_SAYS = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hal"}}
_COUNTS = {"prompt_tokens": 90, "completion_tokens": 10}
_CANDIDATE = {"content": {"parts": [{"text": "Hal"}]}}

# The start of a reply before it breaks off, by wire format. Its usage comes first, or in every chunk.
HEADS = {
    "anthropic_messages": sse(_STARTS, _SAYS),
    "openai_chat": sse({"choices": [{"index": 0, "delta": {"content": "Hal"}}], "usage": _COUNTS}),
    "gemini": sse(
        {
            "candidates": [_CANDIDATE],
            "usageMetadata": {"promptTokenCount": 90, "candidatesTokenCount": 10},
        }
    ),
}
NO_COUNTS = {
    "anthropic_messages": sse({"type": "message_start", "message": {"usage": {"input_tokens": "9"}}}, _SAYS),
    "openai_chat": sse(
        {"choices": [{"index": 0, "delta": {"content": "Hal"}}], "usage": {"prompt_tokens": "9"}}
    ),
    "gemini": sse({"candidates": [_CANDIDATE], "usageMetadata": {"candidatesTokenCount": "9"}}),
}
OVERLOADED = Stream(
    (sse(_STARTS, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),)
)
ANSWER = Stream(
    (
        sse(
            {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
            _SAYS,
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ),
    )
)


@asynccontextmanager
async def _talking(
    folder: Path,
    wire: str,
    *script: Script,
    sleep: Callable[[float], Any] = asyncio.sleep,
    models: str = "acme/model",
    **options: Any,
) -> AsyncIterator[tuple[Runtime, Loopback]]:
    async with asyncio.timeout(PATIENCE), loopback(*script) as server:
        catalog = load_catalog()
        for name in ("acme", "zeta"):
            catalog = catalog.with_provider(Provider(name, name, server.url, wire=wire, local=True))
        client = HttpClient(sleep=sleep, random=lambda: 0.0)
        keys = Keys({"acme": "sk-acme-0123456789", "zeta": "sk-zeta-0123456789"})
        async with (
            Models(models, catalog=catalog, keys=keys, client=client) as served,
            Runtime(folder / "chat.db", model=served, **options) as runtime,
        ):
            yield runtime, server


async def _spent(runtime: Runtime) -> Usage:
    spent: Spending = sum(await runtime.store.spending(), Spending())
    return spent.usage


async def _counted(runtime: Runtime, turn: TurnHandle) -> list[Usage]:
    """Return the usage of the turn, its conversation, its trace and its user."""
    conversation = await runtime.store.conversation((await turn.trace()).conversation)
    return [
        (await turn.turn()).usage,
        conversation.usage,
        (await turn.trace()).usage,
        await _spent(runtime),
    ]


@pytest.mark.parametrize("wire", HEADS)
async def test_what_a_cancelled_reply_used_counts(wire: str, tmp_path: Path) -> None:
    """A user cannot avoid a limit by cancelling in time (T12 × T9)."""
    stalls = Stream((HEADS[wire],), "stalls")
    async with _talking(tmp_path, wire, stalls, max_daily_tokens=100) as (runtime, _):
        turn = await runtime.send("go")
        async for event in turn.events():
            if isinstance(event, TextDelta):
                await turn.cancel()
        assert await _counted(runtime, turn) == [COUNTED] * 4
        with pytest.raises(ProviderError, match="100 tokens a day"):
            await (await runtime.send("and again")).result()


@pytest.mark.parametrize("wire", HEADS)
async def test_what_a_reply_used_that_broke_off_counts(wire: str, tmp_path: Path) -> None:
    async with _talking(tmp_path, wire, Stream((HEADS[wire],), "dies")) as (runtime, _):
        turn = await runtime.send("go")
        with pytest.raises(ProviderError):
            await turn.result()
        assert await _counted(runtime, turn) == [COUNTED] * 4


@pytest.mark.parametrize("wire", NO_COUNTS)
async def test_counts_that_are_none_hide_no_error(wire: str, tmp_path: Path) -> None:
    """Invalid counts hide no error, and a chain of models continues (T12 × R6)."""
    async with _talking(tmp_path, wire, Stream((NO_COUNTS[wire],), "dies")) as (runtime, _):
        turn = await runtime.send("go")
        with pytest.raises(ProviderError, match="broke in the middle"):
            await turn.result()
        assert (await turn.turn()).usage.is_empty


async def test_what_a_reply_used_that_a_stop_broke_off_counts(tmp_path: Path) -> None:
    """Dragoman requests the reply again, and both attempts count (T12 × S2)."""
    stalls = Stream((HEADS["anthropic_messages"],), "stalls")
    async with _talking(tmp_path, "anthropic_messages", stalls) as (runtime, _):
        turn = await runtime.send("go")
        async for event in turn.events():
            if isinstance(event, TextDelta):
                break
    async with _talking(tmp_path, "anthropic_messages", ANSWER) as (runtime, _):
        again = runtime.turn(turn.id)
        assert (await again.result()).text == "Hal"
        assert await _counted(runtime, again) == [Usage(97, 13, cost=0.0)] * 4


async def test_what_an_attempt_used_is_stored_before_the_next_and_counts_once(tmp_path: Path) -> None:
    """T12 × R6 × S2: the wait between them may be long, and the program killed in it."""
    go_on = asyncio.Event()

    async def waits(_: float) -> None:
        await go_on.wait()

    script = (OVERLOADED, ANSWER)
    async with _talking(tmp_path, "anthropic_messages", *script, sleep=waits) as (runtime, _):
        turn = await runtime.send("go")
        async for event in turn.events():
            if isinstance(event, StepRetry):
                assert await _spent(runtime) == COUNTED
                go_on.set()
        result = await turn.result()
        assert [message.usage for message in result.messages[1:]] == [Usage(7, 3, cost=0.0)]
        assert await _counted(runtime, turn) == [Usage(97, 13, cost=0.0)] * 4


async def test_a_turn_that_is_taken_up_in_a_wait_counts_nothing_twice(tmp_path: Path) -> None:
    """The usage before the restart and the usage of the answer after it each count once (T12 × S2)."""
    held = asyncio.Event()

    async def waits(_: float) -> None:
        await held.wait()

    async with _talking(tmp_path, "anthropic_messages", OVERLOADED, sleep=waits) as (runtime, _):
        turn = await runtime.send("go")
        async for event in turn.events():
            if isinstance(event, StepRetry):
                break
    async with _talking(tmp_path, "anthropic_messages", ANSWER) as (runtime, _):
        again = runtime.turn(turn.id)
        assert (await again.result()).text == "Hal"
        assert await _counted(runtime, again) == [Usage(97, 13, cost=0.0)] * 4


async def test_what_a_model_used_counts_as_its_own_where_the_next_of_a_chain_answers(tmp_path: Path) -> None:
    """The user's usage lists each model of a chain separately (T12 × R6)."""

    async def at_once(_: float) -> None:
        pass

    script = (*[OVERLOADED] * 4, ANSWER)
    names = "acme/model, zeta/model"
    async with _talking(tmp_path, "anthropic_messages", *script, sleep=at_once, models=names) as (runtime, _):
        turn = await runtime.send("go")
        assert (await turn.result()).text == "Hal"
        spent = {one.model: one.input for one in await runtime.store.spending()}
        assert spent == {"acme/model": 360, "zeta/model": 7}
        assert (await turn.turn()).usage.input == 367


async def test_what_a_tool_asked_of_the_model_for_nothing_is_paid_for_too(tmp_path: Path) -> None:
    """T12 × a tool that samples: the next batch of calls is over the limit."""

    @tool
    async def think(context: ToolContext) -> str:
        """Ask the model."""
        return (await context.complete(Request("", (RequestMessage("user", (Text("aside"),)),)))).text

    script = (calls("think"), Stream((HEADS["openai_chat"],), "dies"), calls("think"), says("enough"))
    options: dict[str, Any] = {"tools": [think], "allow": ["*"], "max_tokens": 110}
    async with _talking(tmp_path, "openai_chat", *script, **options) as (runtime, _):
        turn = await runtime.send("go")
        result = await turn.result()
        states = [call.state for call in calls_of(result.messages)]
        assert (states, result.text) == ([CallState.FAILED, CallState.SKIPPED], "enough")
        assert await _counted(runtime, turn) == [Usage(120, 25, cost=0.0)] * 4


class _Breaks(Plugin):
    """Fails over a reply that is whole."""

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        if appending.message.role == "assistant" and appending.message.text:
            raise OSError("no such disk")


async def test_a_whole_reply_over_which_a_plugin_fails_counts(tmp_path: Path) -> None:
    """T12 × H6"""
    script = says("Hello.", usage=Usage(5, 6))
    async with _talking(tmp_path, "openai_chat", script, plugins=[_Breaks()]) as (runtime, _):
        turn = await runtime.send("go")
        with pytest.raises(OSError, match="no such disk"):
            await turn.result()
        assert await _counted(runtime, turn) == [Usage(5, 6, cost=0.0)] * 4


class _Refuses(Plugin):
    """Refuses the first reply, though it is whole, and has it asked for again."""

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        if appending.message.text == "First.":
            raise ProviderError("not this one")

    async def on_error(self, error: Exception, turn: TurnView) -> bool:
        return True


async def test_a_whole_reply_that_is_asked_for_again_counts(tmp_path: Path) -> None:
    """A discarded reply and its repetition both count (T12 × H6)."""
    script = (says("First.", usage=Usage(5, 6)), says("Second.", usage=Usage(2, 1)))
    async with runtime_with(tmp_path, script, plugins=[_Refuses()]) as runtime:
        turn = await runtime.send("go")
        assert (await turn.result()).text == "Second."
        assert await _counted(runtime, turn) == [Usage(7, 7)] * 4
        requests = (await turn.trace()).steps[0].requests
        assert [request.usage for request in requests] == [Usage(5, 6), Usage(2, 1)]


class _Ponders(Plugin):
    """Has not finished its reply when the program stops."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        if appending.message.role == "assistant":
            self.began.set()
            await asyncio.Event().wait()


async def test_a_whole_reply_counts_that_a_stop_keeps_from_being_stored(tmp_path: Path) -> None:
    """T12 × S2 × H6"""
    ponders, script = _Ponders(), says("First.", usage=Usage(5, 6))
    async with _talking(tmp_path, "openai_chat", script, plugins=[ponders]) as (runtime, _):
        turn = await runtime.send("go")
        await ponders.began.wait()
    async with _talking(tmp_path, "openai_chat", says("Second.", usage=Usage(2, 1))) as (runtime, _):
        again = runtime.turn(turn.id)
        assert (await again.result()).text == "Second."
        assert await _counted(runtime, again) == [Usage(7, 7, cost=0.0)] * 4


class _KeepsBack(Plugin):
    """Withholds every reply."""

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        appending.prevent()


async def test_a_reply_that_a_plugin_keeps_back_counts(tmp_path: Path) -> None:
    """A withheld reply is in no message, and its usage counts (T12 × H6)."""
    script = says("Hello.", usage=Usage(5, 6))
    async with _talking(tmp_path, "openai_chat", script, plugins=[_KeepsBack()]) as (runtime, _):
        turn = await runtime.send("go")
        assert (await turn.result()).text == ""
        assert await _counted(runtime, turn) == [Usage(5, 6, cost=0.0)] * 4
        assert [one.model for one in await runtime.store.spending()] == ["acme/model"]


async def test_a_reply_that_came_to_its_end_counts_as_it_did(tmp_path: Path) -> None:
    async with _talking(tmp_path, "openai_chat", says("Hello.", usage=Usage(5, 6))) as (runtime, _):
        turn = await runtime.send("go")
        await turn.result()
        assert await _counted(runtime, turn) == [Usage(5, 6, cost=0.0)] * 4
        assert "model_asked" not in "".join(await runtime.store.facts(turn.id))


class _Overloaded:
    """A model whose first attempt came to no end."""

    name = "one"
    context: int | None = None
    variant: Mapping[str, JsonValue] = {}

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        pass

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[list[Event], None]:
        request.lost.append(LostReply("one", Usage(90, 10)))
        yield [StepRetry(2, 4, 0.0, "busy", 529)]


async def test_a_cancel_while_a_price_is_looked_up_loses_no_count() -> None:
    """T12 × T9: the price list takes a quarter of a second, once."""
    looked_up = asyncio.Event()

    async def price(_: Usage) -> float:
        if not looked_up.is_set():
            looked_up.set()
            await asyncio.Event().wait()
        return 0.5

    request = Request("one", ())
    async with asyncio.timeout(PATIENCE):
        asking = asyncio.create_task(
            collect_reply(ServedModel(_Overloaded(), Traits(), price=price), request)
        )
        await looked_up.wait()
        asking.cancel()
        await asyncio.wait([asking])
    assert request.lost == [LostReply("one", Usage(90, 10, cost=0.5))]
