"""M2: input that a model cannot take or lacks is reported before anything is stored, with possible
remedies."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import BadRequest
from dragoman.messages.message import File, Part, Text
from tests.media.media_server import media_server, png, wav
from tests.media.runtimes import media_runtime, put

PICTURE = File("image/png", url="data:image/png;base64,iVBORw0KGgo=", name="cat.png")
SOUND = File("audio/wav", url="data:audio/wav;base64,UklGRg==", name="memo.wav")
ELSEWHERE = File("image/png", url="https://example.org/cat.png")
FILM = File("video/mp4", url="data:video/mp4;base64,AAAA", name="film.mp4")


@pytest.mark.parametrize(
    ("model", "parts", "match"),
    [
        ("retoucher", [Text("a hat")], "has no image. Attach one.*acme/gpt-image-1.*makes images"),
        ("retoucher", [PICTURE], "say what to change"),
        ("retoucher", [Text("x"), SOUND], "does not take memo.wav.*acme/whisper-large-v3"),
        ("whisper-large-v3", [Text("hello")], "has no recording. Attach one"),
        ("whisper-large-v3", [SOUND, SOUND], "one recording at a time"),
        ("whisper-large-v3", [PICTURE], r"does not take cat.png.*acme/retoucher changes images"),
        ("tts-1", [PICTURE, Text("x")], "speaks text and does not take cat.png"),
        ("gpt-image-1", [PICTURE], "say what the image should show"),
        ("dall-e-3", [Text("x"), PICTURE], "acme/retoucher changes images"),
        ("dall-e-3", [Text("x"), FILM], "leave it out, or choose a model that takes films"),
        ("retoucher", [Text("x"), ELSEWHERE], "is only an address. Attach the file itself"),
        ("talker", [Text("x"), SOUND], "have acme/whisper-large-v3 write it down first"),
        ("talker", [Text("x"), PICTURE], "Choose a model that takes images"),
    ],
)
async def test_a_message_that_its_model_can_do_nothing_with_is_refused(
    tmp_path: Path, model: str, parts: list[Part], match: str
) -> None:
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        with pytest.raises(BadRequest, match=match):
            await runtime.send(parts, model=f"acme/{model}")
        assert await runtime.conversations() == []
    assert server.asked == []


async def test_a_rerun_by_a_model_of_another_type_is_checked_as_well(tmp_path: Path) -> None:
    """M2 × T14"""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        chat = await runtime.conversation()
        answer = (await (await chat.send("a square", model="acme/dall-e-3")).result()).messages[-1]
        with pytest.raises(BadRequest, match="has no recording"):
            await chat.rerun(answer.id, model="acme/whisper-large-v3")
        assert len(await runtime.store.turns(chat.id)) == 1


async def test_a_new_version_of_a_message_is_checked_against_what_stands_before_it(tmp_path: Path) -> None:
    """The image in the replaced version does not count (M2 × edit)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        chat = await runtime.conversation(model="acme/retoucher")
        cat = await put(runtime, png(), "image/png", "cat.png")
        turn = await chat.send([Text("a hat"), cat])
        said = (await turn.result()).messages[0]
        messages, _ = await runtime.store.messages(chat.id)
        said = next(message for message in messages if message.role == "user")
        with pytest.raises(BadRequest, match="has no image"):
            await chat.edit(said.id, "a beard")


async def test_a_type_cannot_be_asked_of_a_picture(tmp_path: Path) -> None:
    """M2 × R8"""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        with pytest.raises(BadRequest, match="gives no text"):
            await runtime.send("a square", model="acme/gpt-image-1", output_type=int)
    assert server.asked == []


async def test_what_is_queued_and_what_is_said_in_between_is_checked(tmp_path: Path) -> None:
    """M2 × Q1: a turn that waits has its own model."""
    from tests.media.media_server import hangs

    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [hangs(server)]
        chat = await runtime.conversation(model="acme/gpt-image-1")
        sound = await put(runtime, wav(), "audio/wav", "memo.wav")
        turn = await chat.send("a square")
        with pytest.raises(BadRequest, match=r"does not take memo\.wav"):
            await turn.steer([Text("and this"), sound])
        with pytest.raises(BadRequest, match=r"does not take memo\.wav"):
            await chat.send([Text("and this"), sound], queue=True)
        await turn.cancel()
        await turn.result()
