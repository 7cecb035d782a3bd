"""M4: pictures and sound that chat models make by themselves are parts like those of other models."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from dragoman import OpenAICompatible, Runtime
from dragoman.messages.events import FilePartial
from dragoman.messages.message import File, Part, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire import gemini, openai_chat, openai_responses
from dragoman.wire.files.file_parts import Attachments, without_files
from dragoman.wire.wire import Wire
from tests.loopback import delta, loopback, stream
from tests.media.media_server import coded, png
from tests.wire.replies import Reply, decode, sse

PICTURE = f"data:image/png;base64,{coded(png())}"
SAMPLES = bytes(range(8))


def reply(wire: Wire, *frames: Any) -> Reply:
    return decode(wire, [sse(*frames)])


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_picture_in_a_chat_completion_is_a_file() -> None:
    """M4: as OpenRouter and LiteLLM send it, once, however often it comes."""
    images = [{"type": "image_url", "image_url": {"url": PICTURE}}]
    message = reply(
        openai_chat.WIRE(),
        chunk(content="Here it is."),
        chunk(images=images),
        chunk(images=images),
        chunk("stop"),
        b"[DONE]",
    )
    text, file = message.parts
    assert text == Text("Here it is.")
    assert isinstance(file, File)
    assert (file.media_type, file.url, file.name) == ("image/png", PICTURE, "image-1.png")


async def test_a_picture_whose_data_is_invalid_is_a_file_without_bytes(tmp_path: Path) -> None:
    """M4, T8"""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,a"}}
    async with (
        loopback(stream(delta(content="Here:", images=[picture]))) as server,
        Runtime(tmp_path / "chat.db", model=OpenAICompatible(server.url, model="m")) as runtime,
    ):
        _, file = (await (await runtime.send("draw")).result()).messages[-1].parts
    assert isinstance(file, File)
    assert (file.media_type, file.url, file.blob) == ("image/png", None, None)


def test_what_a_chat_model_speaks_is_a_sound_and_its_words() -> None:
    """OpenAI streams raw samples, and Dragoman makes a file of them that a browser can play (M4)."""
    message = reply(
        openai_chat.WIRE(),
        chunk(audio={"id": "a", "transcript": "Hel"}),
        chunk(audio={"data": coded(SAMPLES[:4])}),
        chunk(audio={"transcript": "lo", "data": coded(SAMPLES[4:])}),
        chunk("stop"),
        b"[DONE]",
    )
    text, file = message.parts
    assert text == Text("Hello")
    assert isinstance(file, File)
    data = b64decode((file.url or "").partition(",")[2])
    assert (file.media_type, data[:4], data[44:]) == ("audio/wav", b"RIFF", SAMPLES)


def test_what_gemini_speaks_is_one_sound() -> None:
    """M4: at the rate that it names."""

    def piece(data: bytes, **more: Any) -> dict[str, Any]:
        inline = {"mimeType": "audio/L16;codec=pcm;rate=16000", "data": coded(data)}
        return {"candidates": [{"content": {"parts": [{"inlineData": inline}]}, **more}]}

    (file,) = reply(gemini.WIRE(), piece(SAMPLES[:4]), piece(SAMPLES[4:], finishReason="STOP")).parts
    assert isinstance(file, File)
    data = b64decode((file.url or "").partition(",")[2])
    assert (int.from_bytes(data[24:28], "little"), data[44:]) == (16000, SAMPLES)


def test_a_picture_of_the_responses_api_is_a_file_and_shown_on_the_way() -> None:
    """M4: its bytes are nowhere else in the message."""
    done = {
        "type": "image_generation_call",
        "id": "ig_1",
        "status": "completed",
        "revised_prompt": "a square",
    }
    partial = {"type": "response.image_generation_call.partial_image", "partial_image_b64": coded(png(2, 2))}
    decoder = openai_responses.WIRE().decoder("msg_r")
    events = [
        event
        for frame in (
            partial,
            {"type": "response.output_item.done", "item": {**done, "result": coded(png())}},
            {"type": "response.completed", "response": {"status": "completed"}},
        )
        for event in decoder.feed(sse(frame).removeprefix(b"data: ").strip())
    ]
    assert next(type(event) for event in events) is FilePartial
    message = reply(
        openai_responses.WIRE(),
        {"type": "response.output_item.done", "item": {**done, "result": coded(png())}},
        {"type": "response.completed", "response": {"status": "completed"}},
    )
    item, file = message.parts
    assert isinstance(file, File)
    assert file.url == PICTURE
    assert coded(png()) not in str(item)


MADE = File("image/png", blob="b" * 64, name="cat.png", made_by="google/gemini-image", signature="sig")
HELD = Attachments({"b" * 64: coded(png())})


def asked(model: str, *said: tuple[str, tuple[Part, ...]]) -> Request:
    messages: Any = tuple(RequestMessage(role, parts) for role, parts in said)  # type: ignore[arg-type]
    return Request(model, messages)


HISTORY = (("user", (Text("A cat."),)), ("assistant", (MADE,)), ("user", (Text("Larger."),)))


def test_gemini_gets_its_own_picture_back_with_its_signature() -> None:
    """R5, M4"""
    body: Any = gemini.WIRE().encode(asked("google/gemini-image", *HISTORY), HELD)
    drawn = {"inlineData": {"mimeType": "image/png", "data": coded(png())}, "thoughtSignature": "sig"}
    assert body["contents"][1] == {"role": "model", "parts": [drawn]}


@pytest.mark.parametrize("wire", [openai_chat.WIRE(), openai_responses.WIRE(), gemini.WIRE()])
def test_other_models_are_shown_what_was_made_as_what_a_person_shows(wire: Wire) -> None:
    """M3: no wire takes a picture in the mouth of an assistant that did not make it."""
    body = str(wire.encode(asked("another/model", *HISTORY), HELD))
    assert "[Made by the assistant]" in body
    assert coded(png()) in body
    assert "sig" not in body


def test_a_model_that_cannot_see_is_told_what_was_made() -> None:
    """A line replaces the file, and it is not text of the assistant, because the model would imitate
    it (M3)."""
    request = without_files(asked("another/model", *HISTORY), lambda file: True, "which it cannot see")
    assert request.messages == (
        RequestMessage("user", (Text("A cat."),)),
        RequestMessage("user", (Text("[Made by the assistant]\n[cat.png, image/png, which it cannot see]"),)),
        RequestMessage("user", (Text("Larger."),)),
    )
