"""M4 × T12: costs of models that tools call count once for the turn, for every outcome of the call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman import Runtime, ToolFailed, allow_once, tool
from dragoman.messages.message import CallState, Text
from dragoman.messages.usage import Usage
from dragoman.tools.tool import ToolContext
from dragoman.wire.scripted import Line, calls, says
from tests.media.media_server import MediaServer, media_server
from tests.media.test_tools import Both, calls_of

WORDS = Usage(input=10, output=5, cost=0.01)  # of each reply of the model that talks
PICTURE = 0.04


def draws(*prompts: str, tool: str = "make_image") -> Line:
    """One reply with a call for each."""
    made = tuple(call for prompt in prompts for call in calls(tool, prompt=prompt).calls)
    return Line(calls=made, usage=WORDS)


@asynccontextmanager
async def opened(
    folder: Path, server: MediaServer, *script: Line, tools: Any = ("media",), **settings: Any
) -> AsyncIterator[Runtime]:
    model = Both(server, *script)
    model.of_type = lambda _: ["acme/dall-e-3"]  # four cents each
    settings = {"allow": ["media.*", "draw_and_*"], **settings}
    async with (
        model.models,
        Runtime(folder / "chat.db", model=model, tools=tools, **settings) as runtime,
    ):
        yield runtime


def cost(usage: Usage) -> float:
    assert usage.cost is not None
    return round(usage.cost, 6)


async def test_pictures_made_side_by_side_are_part_of_what_the_turn_and_its_person_spent(
    tmp_path: Path,
) -> None:
    """The cost is in the result, the conversation and the usage per model, also after all of it is deleted
    (M4)."""
    async with media_server() as server:
        script = draws("a cat", "a dog", "an owl"), says("There.", usage=WORDS)
        async with opened(tmp_path, server, *script) as runtime:
            chat = await runtime.conversation()
            result = await (await chat.send("draw")).result()
            assert (cost(result.usage), result.usage.images) == (round(2 * 0.01 + 3 * PICTURE, 6), 3)
            info = await runtime.store.conversation(chat.id)
            assert info.usage == result.usage
            spent = {one.model: (one.replies, round(one.cost, 6)) for one in await runtime.spending("model")}
            assert spent == {"scripted/model": (2, 0.02), "acme/dall-e-3": (3, 0.12)}
            await runtime.store.delete_conversation(chat.id)
            kept = {one.model: (one.replies, round(one.cost, 6)) for one in await runtime.spending("model")}
            assert kept == spent


async def test_the_limits_count_a_picture_once(tmp_path: Path) -> None:
    """Both the turn's and the day's limit allow two images with their replies, and no third one (M4 × T7)."""
    for limit in ("max_cost", "max_daily_cost"):
        (tmp_path / limit).mkdir()
        async with media_server() as server:
            script = draws("one"), draws("two"), draws("three"), says("Enough.", usage=WORDS)
            async with opened(tmp_path / limit, server, *script, **{limit: 0.105}) as runtime:
                result = await (await runtime.send("draw")).result()
        states = [call.state for call in calls_of(result.messages)]
        assert states == [CallState.COMPLETED, CallState.COMPLETED, CallState.SKIPPED]


class Brush:
    """A tool that requests an image and then follows its instructions."""

    def __init__(self) -> None:
        self.paid = asyncio.Event()

    def tool(self, after: str) -> Any:
        @tool(name="draw_and_wait", permission="draw_and_wait", replay="ask")
        async def draw_and_wait(prompt: str, context: ToolContext) -> str:
            """Draw."""
            await context.ask_model("image-gen", [Text(prompt)], {})
            self.paid.set()
            if after == "fail":
                raise ToolFailed("it was not to anybody's liking")
            await asyncio.Event().wait()
            return ""

        return draw_and_wait


async def test_a_call_that_fails_has_cost_what_it_cost(tmp_path: Path) -> None:
    """M4"""
    script = draws("a cat", tool="draw_and_wait"), says("Sorry.", usage=WORDS)
    async with (
        media_server() as server,
        opened(tmp_path, server, *script, tools=[Brush().tool("fail")]) as runtime,
    ):
        assert cost((await (await runtime.send("draw")).result()).usage) == 0.06


async def test_what_was_paid_before_a_cancel_counts(tmp_path: Path) -> None:
    """M4 × T8"""
    brush = Brush()
    async with (
        media_server() as server,
        opened(tmp_path, server, draws("a cat", tool="draw_and_wait"), tools=[brush.tool("wait")]) as runtime,
    ):
        turn = await runtime.send("draw")
        await brush.paid.wait()
        await turn.cancel()
        assert cost((await turn.result()).usage) == 0.05
        assert round(sum(one.cost for one in await runtime.spending()), 6) == 0.05


async def test_a_picture_that_is_not_there_yet_at_a_cancel_costs_nothing(tmp_path: Path) -> None:
    """The provider did not report what it would have cost (M4 × T8)."""
    asked, never = asyncio.Event(), asyncio.Event()

    async def hangs(request: Any) -> Any:
        asked.set()
        await never.wait()

    async with media_server() as server, opened(tmp_path, server, draws("a cat")) as runtime:
        server.instead = [hangs]
        turn = await runtime.send("draw")
        await asked.wait()
        await turn.cancel()
        assert cost((await turn.result()).usage) == 0.01
        never.set()


async def test_what_a_process_paid_before_it_ended_counts_in_the_next(tmp_path: Path) -> None:
    """The call needs approval again, and its second run is paid again (M4 × T13)."""
    async with media_server() as server:
        brush = Brush()
        line = draws("a cat", tool="draw_and_wait")
        async with opened(tmp_path, server, line, tools=[brush.tool("wait")]) as runtime:
            turn = await runtime.send("draw")
            await brush.paid.wait()
        script = [says("There.", usage=WORDS)]
        async with opened(tmp_path, server, *script, tools=[Brush().tool("fail")]) as runtime:
            again = runtime.turn(turn.id)
            assert await again.reached("waiting")
            (question,) = await runtime.questions()
            await runtime.answer(question.id, allow_once())
            assert cost((await again.result()).usage) == 0.1
            assert round(sum(one.cost for one in await runtime.spending()), 6) == 0.1


async def test_a_price_that_is_not_known_is_said_to_be_unknown(tmp_path: Path) -> None:
    """M4: as for words."""
    async with media_server() as server:
        script = draws("a cat"), says("There.", usage=WORDS)
        async with opened(tmp_path, server, *script) as runtime:
            runtime.services.model.of_type = lambda _: ["acme/gpt-image-1"]  # type: ignore[attr-defined]
            result = await (await runtime.send("draw")).result()
            (picture,) = [one for one in await runtime.spending("model") if one.model == "acme/gpt-image-1"]
    assert result.usage == replace(result.usage, cost=None, images=1)
    assert (picture.replies, picture.unpriced) == (1, 1)
