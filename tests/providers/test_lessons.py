"""A provider's error teaches Dragoman which field it refuses, and the request is sent again without it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman import ProviderError, tool
from tests.loopback import (
    Answer,
    Body,
    call_piece,
    delta,
    stream,
)
from tests.providers.picky import CHAT, GEMINI, MESSAGES, RESPONSES, Picky, Talk, says_no, talk

# ── fields ────────────────────────────────────────────────────────────────────────────────────────


class Lesson(NamedTuple):
    wire: str
    options: dict[str, Any]
    error: Answer
    refused: str  # the field that the retry leaves out
    instead: str | None = None


def has(body: Body, path: str) -> bool:
    group, _, name = path.rpartition(".")
    return name in (body.get(group, {}) if group else body)


LESSONS = [
    Lesson(
        CHAT,
        {"max_tokens": 50},
        says_no("Unknown parameter: 'max_completion_tokens'.", param="max_completion_tokens"),
        "max_completion_tokens",
        "max_tokens",
    ),
    Lesson(
        CHAT,
        {"max_tokens": 50},
        Answer(
            422,
            {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are not permitted"}]},
        ),
        "max_completion_tokens",
        "max_tokens",
    ),
    Lesson(CHAT, {}, says_no("Unrecognized request argument supplied: stream_options"), "stream_options"),
    Lesson(CHAT, {}, says_no("property 'stream_options' is unsupported"), "stream_options"),
    Lesson(
        CHAT,
        {"temperature": 0.2},
        says_no(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) "
            "value is supported."
        ),
        "temperature",
    ),
    Lesson(CHAT, {"top_p": 0.5}, says_no("Unsupported parameter: 'top_p'"), "top_p"),
    Lesson(CHAT, {"stop": ["END"]}, says_no("stop is not supported with this model"), "stop"),
    Lesson(
        CHAT,
        {"presence_penalty": 0.5},
        says_no("Argument not supported on this model: presencePenalty"),
        "presence_penalty",
    ),
    Lesson(CHAT, {"seed": 3}, says_no("seed: Extra inputs are not permitted", 422), "seed"),
    Lesson(
        CHAT,
        {"reasoning_effort": "low"},
        says_no('"tiny:1b" does not support thinking'),
        "reasoning_effort",
    ),
    Lesson(
        RESPONSES,
        {"reasoning_effort": "low"},
        says_no("Unsupported parameter: 'reasoning.effort' is not supported with this model."),
        "reasoning.effort",
    ),
    Lesson(RESPONSES, {}, says_no("Encrypted content is not supported with this model."), "include"),
    Lesson(
        MESSAGES, {"temperature": 0.2}, says_no("`temperature` is deprecated for this model."), "temperature"
    ),
    Lesson(
        GEMINI,
        {"reasoning_effort": "low"},
        says_no("Thinking level is not supported for this model."),
        "generationConfig.thinkingConfig",
    ),
    Lesson(
        GEMINI,
        {"presence_penalty": 0.5},
        says_no("Invalid JSON payload received. Unknown name \"presencePenalty\" at 'generation_config'"),
        "generationConfig.presencePenalty",
    ),
]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda one: f"{one.wire}-{one.refused}")
async def test_a_field_that_is_refused_is_left_out_from_then_on(tmp_path: Path, lesson: Lesson) -> None:
    """A notice names the field, and the next turn leaves it out. Setting it again causes another notice
    (R9)."""

    async def twice(talked: Talk) -> None:
        assert [await talked.say(options=lesson.options) for _ in range(2)] == ["Hello.", "Hello."]

    picky = Picky(lambda body: has(body, lesson.refused), lesson.error, wire=lesson.wire)
    talked = await talk(tmp_path, picky, then=twice, wire=lesson.wire)
    assert [has(body, lesson.refused) for body in talked.server.bodies] == [True, False, False]
    lost_again = bool(lesson.options) and lesson.instead is None
    assert [lesson.refused in notice for notice in talked.learned] == [True] * (2 if lost_again else 1)
    assert lesson.instead is None or lesson.instead in talked.server.bodies[-1]


async def test_what_nobody_takes_is_refused_in_the_end(tmp_path: Path) -> None:
    """R9: there is an end to it."""

    async def once(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="unknown"):
            await talked.say(options={"temperature": 0.5, "top_p": 0.5, "max_tokens": 9})

    no = says_no(
        "unknown parameters: 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'messages'"
    )
    talked = await talk(tmp_path, no, then=once)
    assert len(talked.server.bodies) <= 6


async def test_what_a_person_asked_the_answer_to_be_is_not_left_out(tmp_path: Path) -> None:
    """A caller that asks for an answer format must not receive another one (R8)."""

    async def once(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="response_format"):
            await talked.say(options={"response_schema": {"type": "object"}})

    talked = await talk(tmp_path, says_no("Unsupported parameter: 'response_format'"), then=once)
    assert len(talked.server.bodies) == 1


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model. Supported values "
        "are: 'low'.",
        "reasoning_effort: must be one of 'low', 'medium'. Unexpected value: 'high'",
        "Invalid value: 'high'. Supported values are: 'none' and 'low' (reasoning_effort)",
    ],
)
async def test_a_wrong_value_says_nothing_of_the_field(tmp_path: Path, message: str) -> None:
    """The user sees the error, and another value of the field is sent unchanged (R9)."""

    async def twice(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="reasoning_effort"):
            await talked.say(options={"reasoning_effort": "high"})
        assert await talked.say(options={"reasoning_effort": "low"}) == "Hello."

    picky = Picky(lambda body: body["reasoning_effort"] == "high", says_no(message))
    talked = await talk(tmp_path, picky, then=twice)
    assert [body["reasoning_effort"] for body in talked.server.bodies] == ["high", "low"]


async def test_turns_that_run_side_by_side_learn_it_once(tmp_path: Path) -> None:
    """A request sent before the lesson is repeated too (R9)."""

    async def both(talked: Talk) -> None:
        said = [talked.say(options={"temperature": 0.5}) for _ in range(4)]
        assert await asyncio.gather(*said) == ["Hello."] * 4

    picky = Picky(lambda body: "temperature" in body, says_no("Unsupported parameter: 'temperature'"))
    talked = await talk(tmp_path, picky, then=both)
    assert len(talked.learned) == 1


async def test_an_error_that_teaches_nothing_is_an_error(tmp_path: Path) -> None:
    """T8: also where it speaks of a field."""

    async def once(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="at most 4096"):
            await talked.say(options={"max_tokens": 100_000})

    no = says_no("max_tokens is too large: 100000. This model supports at most 4096 completion tokens.")
    talked = await talk(tmp_path, no, then=once)
    assert (len(talked.server.bodies), talked.learned) == (1, [])


# ── system prompts and tools ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "error",
    [
        says_no("System role not supported", 500),
        says_no("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        says_no("Only user and assistant roles are supported!"),
    ],
    ids=["template", "o1", "gemma"],
)
async def test_a_system_prompt_that_is_refused_stands_in_the_first_message(
    tmp_path: Path, error: Answer
) -> None:
    """R2"""

    async def once(talked: Talk) -> None:
        assert await talked.say(system="Be kind.") == "Hello."

    picky = Picky(lambda body: body["messages"][0]["role"] == "system", error)
    talked = await talk(tmp_path, picky, then=once)
    (message,) = talked.server.messages()
    assert message["role"] == "user"
    assert "Be kind." in message["content"]
    assert message["content"].endswith("Hi")


async def test_a_model_without_calls_writes_them_and_that_is_told(tmp_path: Path) -> None:
    """D1"""

    @tool
    def ping() -> str:
        """Say pong."""
        return "pong"

    async def once(talked: Talk) -> None:
        assert await talked.say() == "Hello."

    picky = Picky(lambda body: "tools" in body, says_no("acme/model does not support tools"))
    talked = await talk(tmp_path, picky, then=once, tools=[ping])
    assert len(talked.server.bodies) == 2
    assert "write them as text" in talked.learned[0]


@pytest.mark.parametrize(
    "message",
    [
        "Schemas are too complex. Please reduce the number of tools or the complexity of their schemas.",
        "tools.0.custom.strict: Extra inputs are not permitted",
        "The compiled grammar is too large, which would cause performance issues.",
        "Too many optional parameters in strict tool schemas.",
    ],
)
async def test_schemas_that_are_too_much_to_be_held_to_are_only_shown(tmp_path: Path, message: str) -> None:
    """R9"""

    @tool
    def ping(word: str) -> str:
        """Say pong."""
        return word

    async def twice(talked: Talk) -> None:
        assert [await talked.say(model="acme/claude-sonnet-4-5") for _ in range(2)] == ["Hello.", "Hello."]

    def is_strict(body: Body) -> bool:
        return any("strict" in one for one in body["tools"])

    picky = Picky(is_strict, says_no(message), wire=MESSAGES)
    talked = await talk(tmp_path, picky, then=twice, wire=MESSAGES, tools=[ping])
    assert [is_strict(body) for body in talked.server.bodies] == [True, False, False]
    assert len(talked.learned) == 1


async def test_a_server_that_wants_no_thoughts_back_is_sent_them_once(tmp_path: Path) -> None:
    """A server's reasoning goes back with the call, under its own field name, until the server refuses it
    (W4, R9)."""

    @tool
    def clock() -> str:
        """What time it is."""
        return "noon"

    def thinks(body: Body) -> bool:
        return any("reasoning_content" in message for message in body["messages"])

    called = stream(delta(reasoning_content="Hm."), call_piece("clock", "{}", id="c"), delta("tool_calls"))
    refuses = Picky(thinks, says_no("property 'messages.2.reasoning_content' is unsupported"))
    talked = await talk(tmp_path, called, refuses, refuses, called, refuses, then=asks_twice, tools=[clock])
    second, third, *_ = (body["messages"] for body in talked.server.bodies[1:])
    assert second[-2]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in third[-2]
    assert talked.learned == [
        "acme/model does not take messages.reasoning_content, so Dragoman leaves it out"
    ]
    assert not thinks(talked.server.bodies[-1])


async def asks_twice(talked: Talk) -> None:
    assert await talked.say("What time is it?") == "Hello."
    assert await talked.say("And now?") == "Hello."


async def test_summaries_of_thoughts_that_nobody_may_have_are_not_asked_for_again(tmp_path: Path) -> None:
    """R9"""
    refused = says_no("Your organization must be verified to generate reasoning summaries. Please go to: …")
    picky = Picky(lambda body: "summary" in body.get("reasoning", {}), refused, wire=RESPONSES)
    options = {"reasoning_summary": "auto", "reasoning_effort": "low"}

    async def asks(talked: Talk) -> None:
        assert await talked.say(options=options) == "Hello."

    talked = await talk(tmp_path, picky, picky, then=asks, wire=RESPONSES)
    assert talked.server.bodies[-1]["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
async def test_tools_that_are_refused_as_strict_are_sent_without_it(tmp_path: Path, wire: str) -> None:
    """R9: and a null for what is optional is still none."""

    @tool
    def clock(zone: str = "UTC") -> str:
        """What time it is."""
        return f"noon in {zone}"

    def strict(body: Body) -> bool:
        return any(sent.get("function", sent).get("strict") for sent in body["tools"])

    refused = says_no("Invalid schema for function 'clock': In context=(), it is odd.")
    picky = Picky(strict, refused, wire=wire)

    async def asks(talked: Talk) -> None:
        assert await talked.say() == "Hello."

    talked = await talk(
        tmp_path, picky, picky, then=asks, wire=wire, quirks={"strict_tools": True}, tools=[clock]
    )
    assert [strict(body) for body in talked.server.bodies] == [True, False]
    assert len(talked.learned) == 1
