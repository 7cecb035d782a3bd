"""Dragoman separates reasoning from the answer, whatever its markup (W4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from tests.loopback import (
    Reply,
    call_piece,
    delta,
    loopback,
    stream,
)
from tests.wire.broken_streams.played import ANSWER, WHOLE, play, text

pytestmark = pytest.mark.slow

THOUGHTS: dict[str, Reply] = {
    "tags aligned": text("<think>", "one and two", "</think>", "It is 3."),
    "tags split": text("<th", "ink>one and", " two</", "thi", "nk>\n\nIt", " is 3."),
    "every character for itself": text(*"<think>one and two</think>\n\nIt is 3."),
    "reasoning_content": stream(delta(reasoning_content="one and two"), delta(content="It is 3.")),
    "reasoning": stream(delta(reasoning="one and two"), delta(content="It is 3.")),
    "reasoning in both fields": stream(
        delta(reasoning="one and two", reasoning_content="one and two"), delta(content="It is 3.")
    ),
}


@pytest.mark.parametrize("reply", THOUGHTS.values(), ids=THOUGHTS)
async def test_w4_thoughts_are_told_apart_from_the_answer(reply: Reply, tmp_path: Path) -> None:
    played = await play(tmp_path, reply)
    assert (played.text, played.shown, played.thought) == ("It is 3.", "It is 3.", "one and two")
    assert played.messages[-1].reasoning == "one and two"


async def test_w4_a_lone_end_tag_makes_thoughts_of_what_was_shown(tmp_path: Path) -> None:
    played = await play(tmp_path, text("one and", " two</th", "ink>\n\nIt is 3."))
    assert (played.text, played.messages[-1].reasoning) == ("It is 3.", "one and two")
    assert "think" not in played.shown


async def test_w4_a_model_that_began_inside_its_thoughts_is_expected_to_do_so_again(tmp_path: Path) -> None:
    lone = stream(
        delta(content="I add."),
        delta(content="</think>"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    )
    played = await play(tmp_path, lone, text("Now I", " know.</think>", "It is 3."))
    assert (played.text, played.shown) == ("It is 3.", "I add.It is 3.")
    assert [message.reasoning for message in played.messages[1:]] == ["I add.", "Now I know."]


async def test_w4_an_answer_without_tags_is_not_lost_where_thoughts_were_expected(tmp_path: Path) -> None:
    lone = stream(
        delta(content="I add.</think>"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    )
    played = await play(tmp_path, lone, text("It is", " 3."))
    assert played.text == "It is 3."


async def test_w4_tags_in_code_are_left_alone(tmp_path: Path) -> None:
    sent = "Write `<think>` so:\n```xml\n<think>hm</think>\n```\nThat is all."
    async with loopback(text(*sent)) as server:
        catalog = load_catalog().with_provider(Provider("acme", "Acme", server.url))
        models = Models("acme/m", catalog=catalog)
        async with models, Runtime(tmp_path / "chat.db", model=models) as runtime:
            result = await (await runtime.send("How do I write it?")).result()
    assert result.text == sent


async def test_w4_thoughts_of_another_kind_are_never_sent_back(tmp_path: Path) -> None:
    thinking = stream(
        delta(content="<think>hm, well</think>"),
        call_piece("add", WHOLE, index=0, id="call_1"),
        finish="tool_calls",
    )
    played = await play(tmp_path, thinking, ANSWER)
    assert "hm, well" not in json.dumps(played.server.messages())
