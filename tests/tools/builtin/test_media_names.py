"""M3: files that a media model made have names that a person and later calls can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments, File, Message, Part, Text, ToolCall
from dragoman.tools.builtin.media_tools import _made, _named, make_image
from dragoman.tools.execute import Permit, execute
from tests.tools.bench import Bench


@pytest.mark.parametrize(
    ("words", "files", "taken", "names"),
    [
        ("A raven!", [File("image/png")] * 3, {None}, ["a-raven.png", "a-raven-2.png", "a-raven-3.png"]),
        (
            "A raven",
            [File("image/png")] * 2,
            {"a-raven.png", "a-raven-2.png"},
            ["a-raven-3.png", "a-raven-4.png"],
        ),
        (
            "One two three four five six",
            [File("audio/mpeg", name="x.mp3")],
            (),
            ["one-two-three-four-five.mp3"],
        ),
        ("x" * 60, [File("image/png")], (), [f"{'x' * 40}.png"]),
        ("烏", [File("image/png"), File("image/webp")], (), ["made.png", "made.webp"]),
    ],
)
def test_each_file_has_a_name_of_its_own(
    words: str, files: list[File], taken: set[str | None], names: list[str]
) -> None:
    assert [file.name for file in _named(files, words, taken)] == names


@pytest.mark.parametrize(
    ("said", "told"), [("", "m made nothing"), ("I may not.", "m made nothing: I may not.")]
)
def test_a_model_that_makes_nothing_is_a_failed_call(said: str, told: str) -> None:
    reply = Message("msg_1", "conv_1", None, "assistant", (Text(said),), model="m")
    with pytest.raises(ToolFailed) as failed:
        _made(reply, "a raven", Bench().context())
    assert str(failed.value) == told


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, {}),
        ({"count": 1}, {}),
        ({"count": 2, "size": "auto"}, {"n": 2, "size": "auto"}),
        ({"background": "opaque"}, {"background": "opaque"}),
    ],
)
async def test_a_picture_is_asked_for_as_the_model_wants_it(
    given: dict[str, JsonValue], asked: dict[str, JsonValue]
) -> None:
    """What is not said is left to the media model."""
    heard: list[object] = []

    async def paint(type: str, parts: Sequence[Part], options: dict[str, JsonValue]) -> Message:
        heard.append((type, parts, options))
        return Message("msg_1", "conv_1", None, "assistant", (File("image/png"),), model="m")

    context = replace(Bench().context(), ask_model=paint)
    arguments: Arguments = {"prompt": "A raven", **given}
    made = await execute(
        make_image, call := ToolCall("call_1", "make_image", arguments), Permit(call.hash, "rule"), context
    )
    assert heard == [("image-gen", [Text("A raven")], asked)]
    assert made.result.text == "Made a-raven.png. The person sees it."
    assert made.result.metadata == {"model": "m", "usage": {}}
