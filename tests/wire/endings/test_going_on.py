"""Replies that are not over: paused, cut off, or stopped because the context was full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.conversation.tree import summary_of
from tests.loopback import Stream
from tests.wire.endings.played import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES, Ended, play
from tests.wire.endings.replies import ADD, FOUND, SEARCH, chat, converse, gemini, messages, responses


def last_blocks(ended: Ended, request: int = -1) -> list[dict[str, Any]]:
    """The content of the last message of a request, without the marks for the cache."""
    content = ended.server.messages(request)[-1]["content"]
    return [{name: value for name, value in block.items() if name != "cache_control"} for block in content]


# ── pauses ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "blocks", [(SEARCH,), (SEARCH, FOUND), ()], ids=["with a call open", "with its result", "with text alone"]
)
async def test_a_pause_goes_on_with_the_reply_as_it_is(tmp_path: Path, blocks: tuple[Any, ...]) -> None:
    """No message comes between the two replies, which form one answer (R5, T7)."""
    paused = messages("Let me look. ", "pause_turn", *blocks)
    ended = await play(tmp_path, MESSAGES, paused, messages("There are dragons."))
    assert ended.server.messages()[-1]["role"] == "assistant"
    assert last_blocks(ended) == [{"type": "text", "text": "Let me look. "}, *blocks]
    assert (ended.end.text, ended.end.finish) == ("Let me look. There are dragons.", "stop")
    assert [message.finish for message in ended.stored] == [None, "pause", "stop"]
    assert ended.notices("pause") == []


async def test_a_pause_without_text_goes_on(tmp_path: Path) -> None:
    """The provider's tool results go back, although the reply has no text (R5)."""
    ended = await play(
        tmp_path, MESSAGES, messages("", "pause_turn", SEARCH), messages("Dragons.", "end_turn")
    )
    assert last_blocks(ended) == [SEARCH]
    assert (ended.end.text, len(ended.server.bodies)) == ("Dragons.", 2)


async def test_a_pause_beside_a_call_of_ours_goes_on_with_its_result(tmp_path: Path) -> None:
    """C2"""
    ended = await play(tmp_path, MESSAGES, messages("", "pause_turn", SEARCH, ADD), messages("3"))
    assert [block["type"] for block in last_blocks(ended)] == ["tool_result"]
    assistant = ended.server.messages()[-2]
    assert [block["type"] for block in assistant["content"]] == ["server_tool_use", "tool_use"]
    assert (ended.ran, ended.end.text) == (["1 + 2"], "3")


async def test_pauses_without_end_come_to_the_limit_of_the_turn(tmp_path: Path) -> None:
    """A pause is a round, and a notice names the limit (T7)."""
    paused = messages("Looking. ", "pause_turn", SEARCH)
    ended = await play(tmp_path, MESSAGES, paused, max_rounds=2)
    assert len(ended.server.bodies) == 3
    assert (ended.end.finish, ended.end.limit) == ("pause", "2 rounds of tool calls")
    assert "2 rounds of tool calls" in ended.notices("pause")[0]


async def test_a_budget_ends_pauses_too(tmp_path: Path) -> None:
    """T12"""
    ended = await play(tmp_path, MESSAGES, messages("Looking. ", "pause_turn", SEARCH), max_tokens=10)
    assert (len(ended.server.bodies), ended.end.limit) == (2, "10 tokens")


# ── replies that are cut off ──────────────────────────────────────────────────────────────────────

CUT: list[tuple[str, Stream, Stream]] = [
    (CHAT, chat("Once upon ", "length"), chat("a time.")),
    (RESPONSES, responses("Once upon ", "incomplete", "max_output_tokens"), responses("a time.")),
    (MESSAGES, messages("Once upon ", "max_tokens"), messages("a time.")),
    (GEMINI, gemini("Once upon ", "MAX_TOKENS"), gemini("a time.")),
    (CONVERSE, converse("Once upon ", "max_tokens"), converse("a time.")),
]


@pytest.mark.parametrize(("wire", "cut", "rest"), CUT)
async def test_what_is_cut_off_goes_on(tmp_path: Path, wire: str, cut: Stream, rest: Stream) -> None:
    """The user receives no notice (H10)."""
    ended = await play(tmp_path, wire, cut, rest)
    assert (ended.end.text, ended.end.finish, ended.notices("length")) == ("Once upon a time.", "stop", [])


@pytest.mark.parametrize(("wire", "cut", "rest"), CUT)
async def test_a_limit_that_was_asked_for_bounds_the_whole_reply(
    tmp_path: Path, wire: str, cut: Stream, rest: Stream
) -> None:
    """The reply does not continue, and a notice reports it (H10)."""
    ended = await play(tmp_path, wire, cut, rest, options={"max_tokens": 5})
    assert (ended.end.text, ended.end.finish) == ("Once upon ", "length")
    assert (len(ended.server.bodies), len(ended.notices("length"))) == (1, 1)


async def test_what_is_still_cut_off_in_the_end_is_told(tmp_path: Path) -> None:
    """H10"""
    ended = await play(tmp_path, CHAT, chat("and ", "length"))
    assert (ended.end.text, ended.end.finish) == ("and and and and ", "length")
    assert len(ended.notices("length")) == 1


async def test_who_wants_it_gets_the_rest_of_a_limited_reply(tmp_path: Path) -> None:
    """`continuations` sets the number, also with `max_tokens` (H10)."""
    cut = chat("and ", "length")
    ended = await play(tmp_path, CHAT, cut, options={"max_tokens": 5}, continuations=1)
    assert (ended.end.text, len(ended.server.bodies)) == ("and and ", 2)


async def test_a_limit_used_up_by_thoughts_is_told(tmp_path: Path) -> None:
    """The reply has no text that it could continue (H10)."""
    thought = responses(status="incomplete", why="max_output_tokens", thought="Hm.")
    ended = await play(tmp_path, RESPONSES, thought)
    assert (ended.end.finish, len(ended.server.bodies), len(ended.notices("length"))) == ("length", 1, 1)


# ── a full context ────────────────────────────────────────────────────────────────────────────────


async def test_a_full_context_is_summed_up_before_the_reply_goes_on(tmp_path: Path) -> None:
    """The model continues only after a compaction, because its context has no space left (R7)."""
    full = messages("Once upon ", "model_context_window_exceeded")
    ended = await play(tmp_path, MESSAGES, full, messages("They want a story."), messages("a time."))
    assert (ended.end.text, ended.end.finish) == ("Once upon a time.", "stop")
    assert "Sum up" in str(ended.server.messages(1)[-1])
    assert "They want a story." in str(ended.server.messages(2)[0])
    assert any(summary_of(message) for message in ended.stored)


async def test_a_context_that_is_full_again_is_told(tmp_path: Path) -> None:
    """R7: it makes progress or stops."""
    full = messages("Once upon ", "model_context_window_exceeded")
    ended = await play(tmp_path, MESSAGES, full, messages("A story."), full)
    assert (ended.end.finish, len(ended.server.bodies)) == ("context", 3)
    assert len(ended.notices("context")) == 1


async def test_nothing_is_summed_up_where_that_is_off(tmp_path: Path) -> None:
    """R7: off means off."""
    full = messages("Once upon ", "model_context_window_exceeded")
    ended = await play(tmp_path, MESSAGES, full, compact_at=None)
    assert (ended.end.finish, ended.end.text, len(ended.server.bodies)) == ("context", "Once upon ", 1)
