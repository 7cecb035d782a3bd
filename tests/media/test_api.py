"""M3, M1 over HTTP: images shown while they are made, and the models that make them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from dragoman import Runtime
from dragoman.messages.events import FileAdded, FilePartial
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import makes
from tests.media.media_server import media_server, png, speaks_slowly, wav
from tests.media.runtimes import media_runtime, models_of
from tests.server.site import served, serving

ADA = {"authorization": "Bearer key of ada"}


async def test_a_picture_can_be_looked_at_while_it_is_made(tmp_path: Path) -> None:
    """Only the owner of the conversation can see it, before any message contains it (M3 × U2)."""
    script = [makes(png(), partials=[png(1, 1)])]
    async with served(tmp_path, script) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        turn = await site.runtime.send("draw")
        told = [event async for event in turn.events() if isinstance(event, FileAdded | FilePartial)]
        partial, whole = (str(event.file.blob) for event in told)
        assert [event.file.url for event in told] == [None, None]
        assert (await site.ask("GET", f"/api/files/{partial}?type=image/png")).body == png(1, 1)
        assert (await site.ask("GET", f"/api/files/{whole}?type=image/png")).body == png()
        strangers = await site.ask("GET", f"/api/files/{partial}", headers=ADA)
        (row,) = await site.runtime.conversations()
        tree = await site.get(f"/api/conversations/{row.id}/tree")
    assert strangers.status == 404
    assert partial not in str(tree)
    assert whole in str(tree)


async def test_a_sound_can_be_heard_while_it_is_made(tmp_path: Path) -> None:
    """The owner of the conversation hears it from its first chunk on, and later gets the whole file (M5 ×
    U2)."""
    async with (
        media_server() as server,
        media_runtime(tmp_path, server) as runtime,
        serving(tmp_path, runtime) as site,
    ):
        await runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        server.sound, go_on = wav(60.0), asyncio.Event()
        server.instead = [speaks_slowly(server, 100_000, go_on)]
        turn = await site.say("Hello.", model="acme/tts-1")
        mine = {"authorization": f"Bearer {site.key}"}
        async with site.http.get(f"{site.url}/api/turns/{turn}/sound", headers=mine) as response:
            begun = await response.content.readexactly(90_000)
            (row,) = await runtime.conversations()
            (shown,) = (await site.get(f"/api/conversations/{row.id}/tree"))["turns"]
            assert (shown["state"], shown["arriving"]["file"]["media_type"]) == ("streaming", "audio/wav")
            go_on.set()
            assert begun + await response.read() == server.sound
        assert response.headers["content-type"] == "audio/wav"
        again = await site.ask("GET", f"/api/turns/{turn}/sound")
        strangers = await site.ask("GET", f"/api/turns/{turn}/sound", headers=ADA)
        silent = await site.say("a dragon", model="acme/gpt-image-1")
        no_sound = await site.ask("GET", f"/api/turns/{silent}/sound")
    assert again.body == server.sound
    assert (strangers.status, no_sound.status) == (404, 404)


async def test_bare_samples_are_heard_as_a_wav_file(tmp_path: Path) -> None:
    """M5: no browser knows what else they could be."""
    async with (
        media_server() as server,
        media_runtime(tmp_path, server) as runtime,
        serving(tmp_path, runtime) as site,
    ):
        server.sound = bytes(100_000)
        turn = await site.say("Hello.", model="acme/tts-1", options={"format": "pcm"})
        heard = await site.ask("GET", f"/api/turns/{turn}/sound")
    assert heard.headers["content-type"] == "audio/wav"
    assert (heard.body[:4], heard.body[44:]) == (b"RIFF", server.sound)


async def test_models_come_with_what_they_do(tmp_path: Path) -> None:
    """The list has type, inputs, and prices that are not per token (M1)."""
    async with (
        media_server() as server,
        media_runtime(tmp_path, server) as runtime,
        serving(tmp_path, runtime) as site,
    ):
        answer = await site.get("/api/models")
        listed = answer["items"]
        by_name = {one["name"]: one for one in listed if one["name"].startswith("acme/")}
        refused = await site.ask(
            "POST",
            f"/api/conversations/{await site.conversation()}/turns",
            {"text": "a hat", "model": "acme/retoucher"},
        )
    assert {name.removeprefix("acme/"): one["type"] for name, one in by_name.items()} == {
        "gpt-image-1": "image-gen",
        "dall-e-3": "image-gen",
        "retoucher": "image-edit",
        "whisper-large-v3": "audio-stt",
        "gpt-4o-transcribe": "audio-stt",
        "tts-1": "audio-tts",
        "talker": "chat",
    }
    assert by_name["acme/gpt-image-1"]["modalities"] == ["text", "image"]
    assert by_name["acme/dall-e-3"]["unit_prices"] == {"image": 0.04}
    assert answer["options"]["audio-tts"]["properties"]["format"]["enum"][0] == "mp3"
    assert refused.status == 422
    assert "has no image. Attach one" in str(refused.body)


async def test_models_that_the_settings_name_are_listed_wherever_they_run(tmp_path: Path) -> None:
    """This includes models of a server on this machine at an unusual port (M1)."""
    async with media_server() as server, models_of(server) as models:
        acme = replace(models.catalog.providers["acme"], local=True)
        models.catalog = models.catalog.with_provider(acme)
        async with (
            Runtime(tmp_path / "chat.db", model=models) as runtime,
            serving(tmp_path, runtime) as site,
        ):
            listed = (await site.get("/api/models"))["items"]
    types = {one["name"]: one["type"] for one in listed}
    assert types["acme/retoucher"] == "image-edit"
