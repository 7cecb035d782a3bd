"""M1: a turn of a model that makes images, listens or speaks is a turn like another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman import BadRequest, ProviderError
from dragoman.messages.events import FilePartial, StepRetry, TextDelta
from dragoman.messages.message import Text
from tests.media.media_server import Upload, cut_sound, fails, hangs, media_server, png, wav
from tests.media.runtimes import events_of, made, media_runtime, put
from tests.patience import PATIENCE


async def test_a_picture_is_made_and_shown_on_the_way(tmp_path: Path) -> None:
    """Partial images are published and not kept, and the complete one is part of the answer (M1, M3)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        turn = await runtime.send("a blue square", model="acme/gpt-image-1", options={"quality": "low"})
        events = await events_of(turn)
        partials = [event for event in events if isinstance(event, FilePartial)]
        assert [await runtime.store.blob(one.file.blob or "") for one in partials] == [png(2, 1), png(2, 2)]
        ((file, data),) = await made(runtime, turn)
        result = await turn.result()
    assert (file.media_type, file.url, data, file.made_by) == (
        "image/png",
        None,
        server.picture,
        "acme/gpt-image-1",
    )
    assert result.usage.images == 1
    assert result.usage.output == 100
    assert server.asked == [
        (
            "images/generations",
            {
                "model": "gpt-image-1",
                "prompt": "a blue square",
                "quality": "low",
                "stream": True,
                "partial_images": 2,
            },
        )
    ]
    assert not any("base64" in str(event) for event in events)


async def test_a_provider_that_does_not_stream_gives_several_at_once(tmp_path: Path) -> None:
    """The response has the shape of xAI, Together and DALL-E, and the cost of each image is counted (M1)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        turn = await runtime.send("two", model="acme/dall-e-3", options={"n": 2, "size": "1024x1024"})
        files = await made(runtime, turn)
        usage = (await turn.result()).usage
    assert [file.name for file, _ in files] == ["image-1.png", "image-2.png"]
    assert (usage.images, usage.cost) == (2, 0.08)
    assert server.fields["response_format"] == "b64_json"
    assert "stream" not in server.fields


async def test_a_picture_at_an_address_is_fetched(tmp_path: Path) -> None:
    """The address is short-lived. Only our host can be off the open internet (M3)."""
    from aiohttp import web

    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        here = server.url.removesuffix("/v1")

        async def named(request: web.Request) -> web.StreamResponse:
            there = [{"url": f"{here}/made/cat"}, {"url": "http://127.0.0.1:9/private"}]
            return web.json_response({"data": there})

        server.instead = [named]
        turn = await runtime.send("a cat", model="acme/dall-e-3", options={"n": 2})
        message = (await turn.result()).messages[-1]
        fetched, left = message.files
        assert await runtime.store.blob(fetched.blob or "") == server.picture
    assert (left.blob, left.url) == (None, "http://127.0.0.1:9/private")


async def test_pictures_are_changed_with_a_mask(tmp_path: Path) -> None:
    """Several images and a mask are sent as a form, and the file with the name of a mask is the mask (M1)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        cat, dog = (
            await put(runtime, png(), "image/png", "cat.png"),
            await put(runtime, png(4, 4, b"\0\0\0"), "image/png", "dog.png"),
        )
        mask = await put(runtime, png(4, 4, b"\xff\xff\xff"), "image/png", "cat-mask.png")
        turn = await runtime.send([Text("add a hat"), cat, dog, mask], model="acme/gpt-image-1")
        assert len(await made(runtime, turn)) == 1
    assert server.asked[-1][0] == "images/edits"
    assert [one.name for one in server.fields["image[]"]] == ["cat.png", "dog.png"]
    assert server.fields["mask"] == Upload("cat-mask.png", "image/png", png(4, 4, b"\xff\xff\xff"))
    assert server.fields["prompt"] == "add a hat"
    assert server.fields["stream"] == "true"


async def test_the_last_picture_is_changed_where_none_is_sent(tmp_path: Path) -> None:
    """A conversation about one image continues with it (M1)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        chat = await runtime.conversation(model="acme/retoucher")
        cat = await put(runtime, png(), "image/png", "cat.png")
        server.picture = png(8, 8)
        await (await chat.send([Text("add a hat"), cat])).result()
        await (await chat.send("a larger one")).result()
    assert [fields["image"].data for _, fields in server.asked] == [png(), png(8, 8)]
    assert server.fields["prompt"] == "a larger one"


async def test_xai_takes_a_picture_to_be_changed_in_json(tmp_path: Path) -> None:
    """M1: a quirk of the provider."""
    async with (
        media_server() as server,
        media_runtime(tmp_path, server, quirks={"json_edits": True}) as runtime,
    ):
        cat = await put(runtime, png(), "image/png", "cat.png")
        turn = await runtime.send([Text("add a hat"), cat], model="acme/retoucher")
        assert len(await made(runtime, turn)) == 1
    assert server.fields["image"]["url"].startswith("data:image/png;base64,iVBOR")


async def test_what_is_spoken_is_written_down_as_it_is_heard(tmp_path: Path) -> None:
    """M1: streamed where the model streams."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        sound = await put(runtime, wav(), "audio/x-wav", "memo")
        turn = await runtime.send([sound], model="acme/gpt-4o-transcribe", options={"language": "en"})
        deltas = [event.text for event in await events_of(turn) if isinstance(event, TextDelta)]
        result = await turn.result()
    assert deltas == ["The ", "quick ", "brown ", "fox. "]
    assert server.fields["file"] == Upload("memo.wav", "audio/wav", wav())
    assert (server.fields["language"], server.fields["stream"]) == ("en", "true")
    assert (result.usage.input, result.usage.output) == (14, 5)


async def test_whisper_says_when_what_was_said(tmp_path: Path) -> None:
    """The response has Groq's shape. The message keeps language and segments, and the minutes are paid for
    (M1)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        sound = await put(runtime, wav(), "audio/mpeg", "memo.mp3")
        turn = await runtime.send([Text("Foxes."), sound], model="acme/whisper-large-v3")
        result = await turn.result()
        ((message),) = [one for one in result.messages if one.role == "assistant"]
    assert message.text == "The quick brown fox."
    assert message.metadata["transcript"] == {
        "language": "english",
        "duration": 1.5,
        "segments": [{"start": 0.0, "end": 1.5, "text": " The quick brown fox."}],
    }
    assert result.usage.seconds == 1.5
    assert result.usage.cost == pytest.approx(0.00015)
    assert server.fields["prompt"] == "Foxes."


async def test_text_is_spoken_and_its_sound_comes_in_pieces(tmp_path: Path) -> None:
    """Chunks are published as they arrive, and together they are the file of the answer (M1, M3)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        turn = await runtime.send(
            "Hello there.", model="acme/tts-1", options={"voice": "nova", "format": "wav", "speed": 1.5}
        )
        events = await events_of(turn)
        pieces = [event for event in events if isinstance(event, FilePartial)]
        heard = b"".join([await runtime.store.blob(one.file.blob or "") for one in pieces])
        ((file, data),) = await made(runtime, turn)
        usage = (await turn.result()).usage
    assert (file.media_type, file.name, data) == ("audio/wav", "speech.wav", server.sound)
    assert next(one.offset for one in pieces) == 0
    assert server.sound.startswith(heard)
    assert heard
    assert usage.characters == 12
    assert usage.cost == pytest.approx(12 * 15e-6)
    assert server.fields == {
        "model": "tts-1",
        "input": "Hello there.",
        "voice": "nova",
        "response_format": "wav",
        "speed": 1.5,
    }


async def test_a_text_file_is_read_aloud(tmp_path: Path) -> None:
    """M1"""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        chapter = await put(runtime, b"Call me Ishmael.", "text/plain", "moby.txt")
        await (await runtime.send([chapter], model="acme/tts-1")).result()
    assert server.fields["input"] == "Call me Ishmael."


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────


async def test_a_busy_provider_is_asked_again(tmp_path: Path) -> None:
    """W5: as for any other request."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [fails(429, "Rate limit reached", code="rate_limit_exceeded")]
        turn = await runtime.send("a square", model="acme/gpt-image-1")
        events = await events_of(turn)
        assert len(await made(runtime, turn)) == 1
    assert [event.status for event in events if isinstance(event, StepRetry)] == [429]


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        ((400, "Invalid value: '1x1'. Supported values are: '1024x1024'."), "invalid_request"),
        ((400, "Your request was rejected by the safety system."), "filter"),
    ],
)
async def test_a_refusal_says_why(tmp_path: Path, refused: tuple[int, str], kind: str) -> None:
    """M1: a value that is wrong, and moderation, in the provider's own words."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [fails(*refused)]
        turn = await runtime.send("something", model="acme/gpt-image-1")
        with pytest.raises(ProviderError, match=refused[1][:20]) as raised:
            await turn.result()
    assert raised.value.kind == kind
    assert len(server.asked) == 1


async def test_an_option_that_its_server_refuses_is_an_error_and_not_left_out(tmp_path: Path) -> None:
    """An image without the option would be paid for. Our default is omitted until a user sets it (R9
    × M1)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [fails(400, "Unknown parameter: 'style'.")]
        turn = await runtime.send("a cat", model="acme/gpt-image-1", options={"style": "vivid"})
        with pytest.raises(ProviderError, match="style"):
            await turn.result()
        server.instead = [fails(400, "Unknown parameter: 'partial_images'.")]
        await (await runtime.send("a cat", model="acme/gpt-image-1")).result()
        assert "partial_images" not in server.fields
        both: dict[str, JsonValue] = {"style": "vivid", "partial_images": 1}
        await (await runtime.send("a cat", model="acme/gpt-image-1", options=both)).result()
    assert (server.fields["style"], server.fields["partial_images"]) == ("vivid", 1)
    assert len(server.asked) == 4


@pytest.mark.parametrize("image_data", ["base64", ""])
async def test_how_a_server_is_asked_for_the_bytes_is_a_quirk(tmp_path: Path, image_data: str) -> None:
    """W2: not all know `response_format`."""
    async with (
        media_server() as server,
        media_runtime(tmp_path, server, quirks={"image_data": image_data}) as runtime,
    ):
        await (await runtime.send("a cat", model="acme/dall-e-3")).result()
    assert server.fields.get("response_format") == (image_data or None)


async def test_a_sound_that_is_cut_off_is_kept_with_its_error(tmp_path: Path) -> None:
    """The part that arrived was paid for, and a second attempt makes a complete one (M1, T8)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [cut_sound(server.sound[:30_000])]
        turn = await runtime.send("Hello.", model="acme/tts-1", options={"format": "wav"})
        with pytest.raises(ProviderError, match="broke in the middle"):
            await turn.result()
        question = (await runtime.turn(turn.id).reached("error"), turn)[1]
        chat = await runtime.conversation((await runtime.store.turn(question.id)).conversation)
        tree, _ = await runtime.store.messages(chat.id)
        (half,) = [file for message in tree for file in message.files]
        assert half.blob is not None
        assert server.sound.startswith(await runtime.store.blob(half.blob))
        again = await chat.rerun(tree[0].id)
        ((_, data),) = await made(runtime, again)
    assert data == server.sound


async def test_a_picture_can_be_cancelled_while_it_is_made(tmp_path: Path) -> None:
    """Previews are not kept (T6)."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [hangs(server)]
        turn = await runtime.send("a square", model="acme/gpt-image-1")
        async with asyncio.timeout(PATIENCE):
            async for event in turn.events():
                if isinstance(event, FilePartial):
                    await turn.cancel()
        result = await turn.result()
    assert result.state == "cancelled"
    assert not any(message.files for message in result.messages)


async def test_another_picture_is_a_version_of_the_first(tmp_path: Path) -> None:
    """T14: a rerun keeps model and options."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        chat = await runtime.conversation()
        first = await chat.send("a square", model="acme/dall-e-3", options={"quality": "hd"})
        message = (await first.result()).messages[-1]
        server.picture = png(9, 9)
        second = await chat.rerun(message.id)
        ((_, data),) = await made(runtime, second)
    assert data == png(9, 9)
    assert [fields["quality"] for _, fields in server.asked] == ["hd", "hd"]


async def test_a_turn_that_was_interrupted_is_taken_up(tmp_path: Path) -> None:
    """Nothing of the reply was stored, so the image is requested again (T9)."""
    async with media_server() as server:
        server.instead = [hangs(server)]
        async with media_runtime(tmp_path, server) as first:
            turn = await first.send("a square", model="acme/gpt-image-1")
            async with asyncio.timeout(PATIENCE):
                async for event in turn.events():
                    if isinstance(event, FilePartial):
                        break
        async with media_runtime(tmp_path, server) as second:
            ((_, data),) = await made(second, second.turn(turn.id))
    assert data == server.picture
    assert len(server.asked) == 2


async def test_no_tools_and_no_prompt_go_to_a_model_that_does_not_talk(tmp_path: Path) -> None:
    """Only chat models get tools, and the options that are set for all models (M1)."""
    settings = {"tools": ["basics"], "system": "Be brief.", "options": {"temperature": 0.1}}
    async with media_server() as server, media_runtime(tmp_path, server, **settings) as runtime:
        await (await runtime.send("a square", model="acme/dall-e-3")).result()
    assert server.fields.keys() == {"model", "prompt", "response_format"}


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        ("gpt-image-1", {"size": "huge"}, "the option size"),
        ("gpt-image-1", {"quality": "best"}, "'low', 'medium', 'high'"),
        ("gpt-image-1", {"n": 11}, "less than or equal to 10"),
        ("gpt-image-1", {"temperature": 1}, "has no option 'temperature'"),
        ("tts-1", {"speed": 9}, "the option speed"),
        ("tts-1", {"voices": "x"}, "Did you mean voice"),
        ("whisper-large-v3", {"language": "English"}, "the option language"),
    ],
)
async def test_options_are_checked_before_anything_is_stored(
    tmp_path: Path, model: str, options: dict[str, object], match: str
) -> None:
    """R3"""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        with pytest.raises(BadRequest, match=match):
            await runtime.send("x", model=f"acme/{model}", options=options)  # type: ignore[arg-type]
        assert await runtime.conversations() == []
    assert server.asked == []


async def test_a_mask_of_another_size_is_refused_in_the_providers_words(tmp_path: Path) -> None:
    """M1"""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        cat = await put(runtime, png(), "image/png", "cat.png")
        spot = await put(runtime, png(9, 9), "image/png", "spot.png")
        turn = await runtime.send(
            [Text("add a hat"), cat, spot], model="acme/gpt-image-1", options={"mask": "spot.png"}
        )
        with pytest.raises(ProviderError, match="mask size does not match"):
            await turn.result()
