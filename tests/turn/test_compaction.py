"""Dragoman compacts a conversation that exceeds the context window (R7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from dragoman import Plugin, Runtime, ScriptedModel, tool
from dragoman.conversation.window import Policy
from dragoman.errors import ContextOverflow, ProviderError
from dragoman.messages.events import Event
from dragoman.messages.message import Text, ToolCall
from dragoman.messages.request import Request
from dragoman.plugins.compaction import Compaction, size
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.wire.scripted import Line, calls, fails, says
from tests.runtimes import calls_of, events_of, model_of, runtime_with


async def test_a_full_context_is_summed_up_and_the_original_stays(tmp_path: Path) -> None:
    """R7"""
    script = [says("word " * 400), says("ok"), says("SUMMARY"), says("answer")]
    async with runtime_with(tmp_path, script, context=1100) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("start " * 100)).result()
        await (await chat.send("middle " * 100)).result()
        turn = await chat.send("end " * 60)
        states = [event.state for event in await events_of(turn) if event.type == "turn.state"]
        assert (await turn.result()).text == "answer"
        assert states[:2] == ["compacting", "streaming"]
        sent = model_of(runtime).requests[-1].messages
        assert sent[0].parts[0].text == "SUMMARY"  # type: ignore[union-attr]
        assert sent[-1].parts == (Text("end " * 60),)
        assert (await chat.messages())[1].text == "word " * 400


async def test_a_providers_overflow_is_met_once_by_summing_up(tmp_path: Path) -> None:
    """R7"""
    overflow = fails(ContextOverflow("too long"))
    script = [says("one"), overflow, says("SUMMARY"), says("answer"), overflow, says("SUMMARY 2"), overflow]
    async with runtime_with(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("first")).result()
        assert (await (await chat.send("second")).result()).text == "answer"
        with pytest.raises(ContextOverflow):
            await (await chat.send("third")).result()


async def test_old_outputs_are_cleared_before_anything_is_summed_up(tmp_path: Path) -> None:
    """R7"""

    @tool
    def much() -> str:
        """Says much."""
        return "data " * 400

    script = [calls("much"), says("a"), says("b"), says("c")]
    async with runtime_with(tmp_path, script, tools=[much], context=900) as runtime:
        chat = await runtime.conversation()
        for said in ("one", "two", "three " * 80):
            await (await chat.send(said)).result()
        first = model_of(runtime).requests[-1].messages[1].parts[0]
        assert isinstance(first, ToolCall)
        assert first.result is not None
        assert "cleared" in first.result.text
        (kept,) = calls_of(await chat.messages())
        assert kept.result is not None
        assert kept.result.text.startswith("data data")


def _texts(request: Request) -> list[str]:
    return [getattr(part, "text", "") for message in request.messages for part in message.parts]


async def test_what_a_summary_kept_is_in_the_next_one(tmp_path: Path) -> None:
    """No message falls between two summaries, and the later summary covers both (R7 × R7)."""
    summaries = 0

    def script(request: Request) -> Line:
        nonlocal summaries
        if not _texts(request)[-1].startswith("Sum up"):
            return says("ok " + "x" * 300)
        summaries += 1
        return says(f"SUMMARY {summaries}")

    async with runtime_with(tmp_path, script, context=1000, compact_at=0.5) as runtime:
        chat = await runtime.conversation()
        for number in range(7):
            await (await chat.send(f"question {number} " + "y" * 300)).result()
        asked = ["\n".join(_texts(request)) for request in model_of(runtime).requests]
    assert summaries > 2
    before = ""
    for text in asked:  # each request holds every message, or a summary of it
        seen = f"{before}\n{text}" if "SUMMARY" in text else text
        told = [f"question {number} " in seen for number in range(7)]
        assert told == sorted(told, reverse=True)
        if "Sum up" in text:
            before = seen
    last = asked[-1]
    assert last.count("SUMMARY") == 1


@pytest.mark.parametrize("policy", get_args(Policy))
async def test_as_much_history_as_is_set_whatever_else_shortens_it(tmp_path: Path, policy: Policy) -> None:
    """Turns outside `history` are neither sent nor summarized, but the user's message is sent (R4 × R7)."""

    @tool
    def much(times: int) -> str:
        """Says much."""
        return "data " * (700 if times == 1 else 1)

    script = [
        *(says("ok") for _ in range(4)),
        calls("much", times=1),
        says("SUMMARY of it"),
        calls("much", times=2),
        calls("much", times=3),
        says("done"),
    ]
    async with runtime_with(
        tmp_path, script, tools=[much], context=2400, compact_at=0.5, tool_history=policy
    ) as runtime:
        chat = await runtime.conversation(history=1)
        for said in ("question 0", "question 1", "question 2", long := "question 3 " + "y" * 2000):
            await (await chat.send(said)).result()
        await (await chat.send("the last question")).result()
        requests = model_of(runtime).requests
    assert [_texts(request) for request in requests[3:5]] == [
        ["question 2", "ok", long],
        [long, "ok", "the last question"],
    ]
    summed = "\n".join(_texts(requests[5]))
    assert "question 3" in summed
    assert "the last question" in summed
    assert "question 2" not in summed
    for request in requests[6:]:
        assert _texts(request)[0] == "SUMMARY of it"


async def test_what_a_summary_keeps_of_older_turns_does_not_hide_the_question(tmp_path: Path) -> None:
    """R7 x `history`: the setting may have come after the summary."""
    script = [*(says("ok") for _ in range(4)), fails(ContextOverflow("too long")), says("SUMMARY")]
    script += [says("answer"), says("next")]
    async with runtime_with(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        for number in range(5):
            await (await chat.send(f"question {number}")).result()
        await chat.change(history=1)
        await (await chat.send("the last question")).result()
        sent = _texts(model_of(runtime).requests[-1])
    assert sent == ["SUMMARY", "question 4", "answer", "the last question"]


@pytest.mark.parametrize("wrong", [ContextOverflow("too long"), ProviderError("no such model")])
async def test_what_the_small_model_cannot_sum_up_is_summed_up_by_the_other(
    tmp_path: Path, wrong: ProviderError
) -> None:
    """R7 x a small model for summaries: a conversation does not come to its end with that model's context."""
    large = ScriptedModel([says("word " * 400), says("SUMMARY"), says("answer")], name="a/large", context=900)
    small = ScriptedModel(lambda _: fails(wrong), name="a/small", context=100)
    models = {None: large, "a/large": large, "a/small": small}
    async with Runtime(
        tmp_path / "chat.db", model=lambda name: models[name], small_model="a/small"
    ) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("start " * 100)).result()
        turn = await chat.send("end " * 60)
        told = [event.text for event in await events_of(turn) if event.type == "notice"]
        assert (await turn.result()).text == "answer"
    assert _texts(large.requests[-1])[0] == "SUMMARY"
    assert any("the small model cannot" in text for text in told)


async def test_a_summary_counts_as_the_use_of_the_model_that_wrote_it(tmp_path: Path) -> None:
    """Usage by model names the model of a summary, which once was a line without a name (R7 × T11)."""
    large = ScriptedModel([says("word " * 400), says("answer")], name="a/large", context=900)
    small = ScriptedModel([says("SUMMARY")], name="a/small", context=9000)
    models = {None: large, "a/large": large, "a/small": small}
    async with Runtime(
        tmp_path / "chat.db", model=lambda name: models[name], small_model="a/small"
    ) as runtime:
        chat = await runtime.conversation()
        for said in ("start " * 100, "end " * 60):
            await (await chat.send(said)).result()
        spent = {one.model: one.replies for one in await runtime.spending("model")}
    assert spent == {"a/large": 2, "a/small": 1}


class Bounded(ScriptedModel):
    """Refuses a prompt above its limit, as providers do, and counts the maximum reply size as part of it."""

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        answer = request.options.get("max_tokens", 0)
        assert isinstance(answer, int)
        if size(request) + answer > (self.context or 0):
            raise ContextOverflow("too long")
        async for events in super().stream(request, reply):
            yield events


@asynccontextmanager
async def _moved(
    folder: Path, small: Bounded, turns: int, word: str = "", **options: Any
) -> AsyncIterator[tuple[Runtime, ConversationHandle]]:
    """Run this many turns on a model with a large context, then switch to a model with a small one."""
    large = Bounded(lambda _: says("word " * 400 + word), name="a/large", context=100_000)
    models = {None: large, "a/large": large, "a/small": small}
    async with Runtime(folder / "chat.db", model=lambda name: models[name], **options) as runtime:
        chat = await runtime.conversation()
        for number in range(turns):
            await (await chat.send(f"question {number}")).result()
        await chat.change(model="a/small")
        yield runtime, chat


async def test_what_was_said_to_a_model_with_more_room_is_summed_up_in_pieces(tmp_path: Path) -> None:
    """One request with the whole history would exceed the limit that it has to fix. No chunk splits a
    message, because a private value in it would then escape detection (R3)."""
    small = Bounded(lambda request: says(f"SUMMARY {len(small.requests)}"), name="a/small", context=2400)
    async with _moved(tmp_path, small, 12, "secret", private={"it": "secret"}) as (runtime, chat):
        result = await (await chat.send("the last question")).result()
        *pieces, last = [_texts(request) for request in small.requests]
        assert len(pieces) > 3
        assert result.text == f"SUMMARY {len(small.requests)}"
        assert last[0] == f"SUMMARY {len(pieces)}"
        assert last[-1] == "the last question"
        assert [text for text, _ in pieces[1:] if not text.startswith("What came before")] == []
        assert all(f"question {number}" in repr(small.requests) for number in range(12))
        assert "secret" not in repr([request.messages for request in small.requests])
        turn = runtime.turn(result.id)
        assert (await turn.turn()).usage.input == 10 * len(small.requests)
        assert [one.usage.input for one in (await turn.trace()).compactions if one.usage] == [
            10 * len(pieces)
        ]


@pytest.mark.parametrize("third", [fails(ProviderError("gone")), says("")], ids=["an error", "no summary"])
async def test_what_was_summed_up_is_paid_for_though_the_next_piece_fails(
    third: Line, tmp_path: Path
) -> None:
    """R7 x T12: each piece counts when it is there."""
    small = Bounded([says("SUMMARY"), says("SUMMARY"), third], name="a/small", context=2400)
    async with _moved(tmp_path, small, 12) as (runtime, chat):
        turn = await chat.send("the last question")
        with pytest.raises(ProviderError):
            await turn.result()
        told = 2 if third.error else 3
        assert (await turn.turn()).usage.input == 10 * told
        spent = [one for one in await runtime.store.spending() if one.model == "a/small"]
        assert [(one.replies, one.input) for one in spent] == [(told, 10 * told)]


async def test_what_would_be_too_many_pieces_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    """R7: it makes progress, or stops with an error."""
    small = Bounded([], name="a/small", context=600)
    async with _moved(tmp_path, small, 25) as (_, chat):
        with pytest.raises(ProviderError, match="does not fit into the model's context"):
            await (await chat.send("the last question")).result()
    assert small.requests == []


class Waits(ScriptedModel):
    """Returns its summary when the test releases it."""

    def __init__(self, script: Sequence[Line]) -> None:
        super().__init__(script)
        self.go_on = asyncio.Event()

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        if "Sum up" in repr(request.messages[-1]):
            await self.go_on.wait()
        async for events in super().stream(request, reply):
            yield events


class SumsNothingUp(Plugin):
    @property
    def name(self) -> str:
        return Compaction().name


@pytest.mark.parametrize("plugin", [Compaction(), SumsNothingUp()], ids=["compacted again", "not any more"])
async def test_a_compaction_that_a_restart_broke_off_does_not_end_the_turn(
    tmp_path: Path, plugin: Plugin
) -> None:
    """No stored number shows after a restart that a user's request or a provider's error caused the
    compaction. The compaction runs again, and without a summarizer the turn continues without it (R7 ×
    S3)."""
    async with Runtime(tmp_path / "chat.db", model=Waits([says("one")] * 2), plugins=[Compaction()]) as first:
        chat = await first.conversation()
        for said in ("one", "two"):
            await (await chat.send(said)).result()
        turn = await chat.send("three", compact=True)
        assert await turn.reached("compacting")
    summed_up = isinstance(plugin, Compaction)
    script = [says("SUMMARY"), says("answer")] if summed_up else [says("answer")]
    async with runtime_with(tmp_path, script, plugins=[plugin]) as second:
        assert (await second.turn(turn.id).result()).text == "answer"
        assert ("SUMMARY" in repr(model_of(second).requests[-1].messages)) == summed_up


async def test_what_is_said_while_a_conversation_is_summed_up_is_in_the_next_request(tmp_path: Path) -> None:
    """R7 × T13"""
    model = Waits([says("one"), says("SUMMARY"), says("answer")])
    async with Runtime(tmp_path / "chat.db", model=model, plugins=[Compaction()]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("first")).result()
        turn = await chat.send("second", compact=True)
        assert await turn.reached("compacting")
        await turn.steer("and be brief")
        model.go_on.set()
        assert (await turn.result()).text == "answer"
        assert len(model.requests) == 3
        assert "and be brief" in repr(model.requests[-1].messages)
