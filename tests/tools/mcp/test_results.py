"""Check results of servers as the model reads them."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types as types
import pytest
from mcp.client.auth.exceptions import OAuthFlowError

from dragoman.errors import ToolFailed
from dragoman.tools.execute import result_of
from dragoman.tools.mcp import contents
from dragoman.tools.mcp.contents import output_of
from dragoman.tools.mcp.errors import LoginNeeded, describe
from dragoman.tools.mcp.server_tools import describe_hints
from tests.tools.bench import Bench


async def read(*blocks: dict[str, Any], bench: Bench | None = None, **more: Any) -> Any:
    result = types.CallToolResult.model_validate({"content": [*blocks], **more})
    return result_of(await output_of(result, (bench or Bench()).context()))


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


async def test_texts_stand_one_below_the_other() -> None:
    assert (await read(text("one"), text("two"))).text == "one\ntwo"
    assert (await read()).text == "done"


@pytest.mark.parametrize(
    ("said", "structured", "shown"),
    [
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),  # the same twice
        ("", {"a": 1}, '{"a": 1}'),
        ("hello", {"result": "hello"}, "hello"),  # wrapped because it is not an object
        ("a\nb", {"result": ["a", "b"]}, "a\nb"),
        ("see below", {"a": 1}, 'see below\n{"a": 1}'),
    ],
)
async def test_structured_content_is_shown_once(said: str, structured: Any, shown: str) -> None:
    blocks = [text(said)] if said else []
    assert (await read(*blocks, structuredContent=structured)).text == shown


async def test_sounds_and_embedded_files_are_kept_under_their_names() -> None:
    bench = Bench()
    sound = {"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"}
    blob = {"uri": "file:///tmp/a%20b.pdf", "blob": base64.b64encode(b"%PDF").decode()}
    result = await read(sound, {"type": "resource", "resource": blob}, bench=bench)
    assert [(file.media_type, file.name) for file in result.attachments] == [
        ("audio/wav", None),
        ("application/octet-stream", "a b.pdf"),
    ]
    assert sorted(bench.files.values()) == [b"%PDF", b"RIFF"]
    assert "[sound 1 (audio/wav), 4 bytes]" in result.text


async def test_a_broken_or_a_giant_file_is_told_and_left_out() -> None:
    broken = {"type": "image", "data": "abc", "mimeType": "image/png"}
    giant = {"type": "image", "data": "A" * (contents.LARGEST_FILE * 3 // 2), "mimeType": "image/png"}
    result = await read(broken, giant)
    assert result.attachments == ()
    assert "sent it broken" in result.text
    assert "[image 1 (image/png) was left out: it is too large" in result.text
    giant["data"] = base64.b64encode(b"x" * contents.LARGEST_FILE).decode()
    assert len((await read(giant)).attachments) == 1


async def test_so_many_files_and_no_more() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result = await read(*[image] * (contents.MOST_FILES + 3))
    assert len(result.attachments) == contents.MOST_FILES


async def test_an_error_without_words_is_still_one() -> None:
    with pytest.raises(ToolFailed, match="and not why"):
        await read(isError=True)


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        (None, ""),
        ({}, ""),
        ({"readOnlyHint": True, "destructiveHint": True, "idempotentHint": True}, "it only reads"),
        ({"destructiveHint": True}, "it may destroy something"),
        (
            {"destructiveHint": False, "openWorldHint": False},
            "it destroys nothing, that it keeps to its own data",
        ),
        ({"idempotentHint": True}, "a second run changes nothing more"),
        ({"openWorldHint": True}, "it reaches beyond its own data"),
    ],
)
def test_a_person_reads_what_a_server_claims_of_a_tool(hints: dict[str, bool] | None, words: str) -> None:
    """P3"""
    said = describe_hints(types.ToolAnnotations.model_validate(hints) if hints is not None else None)
    assert said == (f"The server says that {words}." if words else "")


def test_a_login_that_failed_is_told_with_its_reason() -> None:
    """A required login is not a failure (C7)."""
    assert describe(OAuthFlowError("no such client")) == "the login failed: no such client"
    assert "did not work" not in describe(LoginNeeded("no such client"))


def prompt(*messages: dict[str, Any]) -> str:
    return contents.text_of(types.GetPromptResult.model_validate({"messages": [*messages]}))


def test_a_prompt_is_one_text_with_the_models_lines_quoted() -> None:
    """C8: the user reads it before it is sent, so files stay out and say so."""
    resource = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "one\ntwo"}}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert (
        prompt(
            {"role": "user", "content": text("Sum it up.")},
            {"role": "assistant", "content": resource},
            {"role": "user", "content": image},
        )
        == "Sum it up.\n\n> [file:///a.txt]\n> one\n> two\n\n[image was left out]"
    )
    assert len(prompt({"role": "user", "content": text("x" * 200_000)})) == contents.LONGEST_PROMPT


def test_arguments_of_a_prompt_are_required_or_optional() -> None:
    """C8"""
    arguments = [{"name": "city", "required": True}, {"name": "day"}]
    made = contents.prompt_of(types.Prompt.model_validate({"name": "weather", "arguments": arguments}))
    assert (made.required, made.optional) == (("city",), ("day",))
    assert contents.prompt_of(types.Prompt(name="none", title="Nothing")).description == "Nothing"
