"""Every wire requests an answer format by its schema mode if it has one, and by text in the prompt (R8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects.dialect import NAMES
from dragoman.providers.catalog_tables import TraitsTable
from tests.loopback import Body
from tests.providers.picky import CHAT, GEMINI, MESSAGES, RESPONSES, Talk, says_no, talk
from tests.runtimes import add
from tests.sweeps import some
from tests.wire.endings.replies import ANSWERS

SCHEMA = {
    "type": "object",
    "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
    "required": ["value"],
}


def _form(wire: str, body: Body) -> Any:
    """Return the part of a body that holds the answer's schema, or None."""
    match wire:
        case "openai_chat":
            return body.get("response_format", {}).get("json_schema", {}).get("schema")
        case "openai_responses":
            return body.get("text", {}).get("format", {}).get("schema")
        case "anthropic_messages":
            return body.get("output_config", {}).get("format", {}).get("schema")
        case _:
            config = body.get("generationConfig", {})
            return config.get("responseSchema") or config.get("responseJsonSchema")


async def _ask(talk: Talk) -> None:
    turn = await talk.runtime.send("Which?", output_type=list[int])
    talk.events += [event async for event in turn.events()]
    assert (await turn.result()).output == [1, 2]


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES, GEMINI])
async def test_every_wire_is_told_the_schema(tmp_path: Path, wire: str) -> None:
    """R8"""
    talked = await talk(tmp_path, ANSWERS[wire]('{"value": [1, 2]}'), then=_ask, wire=wire)
    (body,) = talked.server.bodies
    form = _form(wire, body)
    assert form["properties"]["value"]["items"]["type"].lower() == "integer"
    assert "JSON schema" in str(body)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (CHAT, "This response_format type is unavailable now"),
        (CHAT, "response_format.type: expected one of text, json_object"),
        (CHAT, "'json_schema' is not supported by this model"),
        (RESPONSES, "Unsupported parameter: 'text.format'"),
        (MESSAGES, "output_config.format: Extra inputs are not permitted"),
        (GEMINI, "Function calling with a response mime type: 'application/json' is unsupported"),
    ],
)
async def test_a_server_without_a_schema_mode_is_asked_in_words(
    tmp_path: Path, wire: str, message: str
) -> None:
    """Dragoman learns from the first refusal, and checks the answer anyway (R8, R9)."""
    answer = ANSWERS[wire]('```json\n{"value": [1, 2]}\n```')

    def script(body: Body) -> Any:
        return says_no(message) if _form(wire, body) else answer

    async def twice(talk: Talk) -> None:
        await _ask(talk)
        await _ask(talk)

    talked = await talk(tmp_path, script, then=twice, wire=wire)
    assert [_form(wire, body) is None for body in talked.server.bodies] == [False, True, True]
    assert len(talked.learned) == 1


@pytest.mark.parametrize("name", some(NAMES, 2))
async def test_calls_as_text_leave_no_room_for_a_schema_mode(tmp_path: Path, name: str) -> None:
    """A model that writes calls as text could write none under a schema. Its answer is not read as a call, in
    any format (R8)."""
    as_text: TraitsTable = {"tools": name, "reasoning": "apart"}
    answer = ANSWERS[CHAT]('{"value": [1, 2]}')
    talked = await talk(tmp_path, answer, then=_ask, known=as_text, tools=[add])
    (body,) = talked.server.bodies
    assert _form(CHAT, body) is None
    assert "JSON schema" in str(body)


async def test_who_asks_for_a_form_of_their_own_is_told_that_it_is_refused(tmp_path: Path) -> None:
    """Dragoman never drops an option silently. A type can go into the prompt, an option cannot (R9)."""

    async def ask(talk: Talk) -> None:
        with pytest.raises(Exception, match="unavailable"):
            await talk.say(options={"response_schema": SCHEMA})

    await talk(tmp_path, says_no("This response_format type is unavailable now"), then=ask)
