"""Check replies of any size that the settings allow: held in memory once, and kept as far as they arrived
(M1, T8)."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from pydantic_core import to_json

from dragoman import BadRequest, ProviderError, Runtime
from dragoman.messages.events import FilePartial, Notice
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.files.pictures import FileLimits
from dragoman.wire.http_client.client import HttpClient, Retry
from dragoman.wire.http_client.payload import LONG, WholeBody
from tests.media.media_server import KEY, Handler, MediaServer, coded, media_server, png, wav
from tests.media.runtimes import events_of, made

PICTURE = b"\x89PNG\r\n\x1a\n" + Random(7).randbytes(8_000_000)


@asynccontextmanager
async def painting(folder: Path, server: MediaServer, reply: int | None = None) -> AsyncIterator[Runtime]:
    """Yield a runtime whose provider can send replies of this size."""
    tables: Any = {
        "painter": {"type": "image-gen", "unit_prices": {"image": 0.01}},
        "speaker": {"type": "audio-tts"},
        "retoucher": {"type": "image-edit"},
    }
    limits = FileLimits() if reply is None else FileLimits(reply=reply)
    provider = Provider("acme", "Acme", server.url, models=tables, own=tables, extra=(), files=limits)
    catalog = load_catalog().with_provider(provider)
    keys = Keys({"acme": KEY}, use_keyring=False, environment={})
    client = HttpClient(retry=Retry(attempts=2, first_wait=0.01))
    async with (
        Models("acme/painter", catalog=catalog, keys=keys, client=client) as models,
        Runtime(folder / "chat.db", model=models) as runtime,
    ):
        yield runtime


def sends(pictures: int, picture: bytes = PICTURE, *, cut: bool = False, aborts: bool = True) -> Handler:
    """Return a handler that sends one JSON body with this number of images, in chunks. It can be cut in the
    middle of the last one, by an aborted connection or an orderly close."""
    data = coded(picture).encode()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"created": 1, "data": [')
        for number in range(pictures):
            await response.write(b'{"b64_json": "' if number == 0 else b', {"b64_json": "')
            last = cut and number == pictures - 1
            for at in range(0, len(data) // 2 if last else len(data), 1 << 18):
                await response.write(data[at : at + (1 << 18)])
            if last:
                assert request.transport is not None
                if aborts:
                    request.transport.abort()
                return response
            await response.write(b'"}')
        await response.write(b"]}")
        return response

    return handler


async def test_four_pictures_of_8_mb_arrive_and_are_held_once(tmp_path: Path) -> None:
    """The JSON has 43 MB. Apart from the images in base64, memory holds no more than a few copies of one of
    them (M1)."""
    async with media_server() as server, painting(tmp_path, server) as runtime:
        server.instead = [sends(1), sends(4)]
        await (await runtime.send("first")).result()  # load lazy imports first
        tracemalloc.start()
        try:
            turn = await runtime.send("four", options={"n": 4})
            result = await turn.result()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        files = await made(runtime, turn)
    assert [data == PICTURE for _, data in files] == [True] * 4
    assert result.usage.cost == pytest.approx(0.04)
    whole, one = 4 * len(coded(PICTURE)), len(coded(PICTURE))
    assert peak < whole + 4 * one, f"{peak / 1e6:.0f} MB for {whole / 1e6:.0f} MB of base64"


async def test_at_the_limit_whole_pictures_are_kept_and_the_setting_is_named(tmp_path: Path) -> None:
    """Kept images are paid for and counted (T8)."""
    async with media_server() as server, painting(tmp_path, server, reply=25_000_000) as runtime:
        server.instead = [sends(4)]
        turn = await runtime.send("four", options={"n": 4})
        with pytest.raises(ProviderError, match="sent more than 25 MB") as failed:
            await turn.result()
        (answer,) = [one for one in (await turn.snapshot()).messages if one.role == "assistant"]
    assert [file.size for file in answer.files] == [len(PICTURE)] * 2
    assert "files.reply = 50000000" in (failed.value.hint or "")
    assert len(server.asked) == 1


async def test_pictures_before_a_broken_connection_are_kept(tmp_path: Path) -> None:
    """Nothing is requested and paid for again (T8)."""
    async with media_server() as server, painting(tmp_path, server) as runtime:
        server.instead = [sends(3, png(), cut=True)]
        turn = await runtime.send("three", options={"n": 3})
        with pytest.raises(ProviderError, match="broke in the middle"):
            await turn.result()
        (answer,) = [one for one in (await turn.snapshot()).messages if one.role == "assistant"]
    assert len(answer.files) == 2
    assert len(server.asked) == 1


async def test_what_was_kept_of_a_failed_answer_is_not_attached_later(tmp_path: Path) -> None:
    """M1 × T8: the picture before it is, which an answer that was whole brought."""
    async with media_server() as server, painting(tmp_path, server) as runtime:
        torn = sends(2, png(5, 5), cut=True)
        server.instead = [torn]
        chat = await runtime.conversation()
        with pytest.raises(ProviderError):
            await (await chat.send("two", options={"n": 2})).result()
        with pytest.raises(BadRequest, match="has no image"):
            await chat.send("make it red", model="acme/retoucher")
        await (await chat.send("one")).result()
        server.instead = [torn]
        with pytest.raises(ProviderError):
            await (await chat.send("two", options={"n": 2})).result()
        await (await chat.send("make it red", model="acme/retoucher")).result()
    assert server.fields["image"].data == server.picture


async def test_pictures_in_a_body_that_ends_too_soon_are_kept(tmp_path: Path) -> None:
    """T8: the connection ends in good order, as where a proxy gave up."""
    async with media_server() as server, painting(tmp_path, server) as runtime:
        server.instead = [sends(3, png(), cut=True, aborts=False)]
        turn = await runtime.send("three", options={"n": 3})
        with pytest.raises(ProviderError, match="ended before the reply was complete"):
            await turn.result()
        (answer,) = [one for one in (await turn.snapshot()).messages if one.role == "assistant"]
    assert len(answer.files) == 2
    assert len(server.asked) == 1


@pytest.mark.parametrize("made", ["pictures", "sound"])
async def test_a_large_reply_is_never_there_three_times(tmp_path: Path, made: str) -> None:
    """M1: in base64, at the moment when one form of it becomes the next."""
    async with media_server() as server, painting(tmp_path, server) as runtime:
        server.instead = [sends(1)] * 2 if made == "pictures" else []
        server.sound = b"ID3" + PICTURE
        model = "acme/painter" if made == "pictures" else "acme/speaker"
        await (await runtime.send("first", model=model)).result()  # load lazy imports first
        tracemalloc.start()
        try:
            await (await runtime.send("second", model=model)).result()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 2.5 * len(coded(PICTURE)), f"{peak / len(coded(PICTURE)):.1f} times"


async def test_a_sound_at_the_limit_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    """T8"""
    async with media_server() as server, painting(tmp_path, server, reply=100_000) as runtime:
        server.sound = wav(20.0)
        turn = await runtime.send("Hello.", model="acme/speaker", options={"format": "wav"})
        with pytest.raises(ProviderError, match=r"sent more than 0\.1 MB"):
            await turn.result()
        (answer,) = [one for one in (await turn.snapshot()).messages if one.role == "assistant"]
        data = await runtime.store.blob(answer.files[0].blob or "")
    assert server.sound.startswith(data)
    assert len(data) == 100_000


async def test_a_picture_at_an_address_that_is_too_large_stays_an_address_and_is_told(tmp_path: Path) -> None:
    """M3: the limit of the settings, which the notice names."""
    async with media_server() as server, painting(tmp_path, server, reply=1024) as runtime:
        server.picture = png(300, 300) + bytes(5_000)
        address = f"{server.url.removesuffix('/v1')}/made/cat"

        async def named(request: web.Request) -> web.StreamResponse:
            return web.json_response({"data": [{"url": address}]})

        server.instead = [named]
        turn = await runtime.send("a cat")
        told = [event.text for event in await events_of(turn) if isinstance(event, Notice)]
        (answer,) = [one for one in (await turn.result()).messages if one.role == "assistant"]
    assert answer.files[0].url == address
    assert any("files.reply = 2048" in one for one in told)


async def test_partial_images_come_from_any_server_that_sends_them(tmp_path: Path) -> None:
    """This holds for any model name (M3, R9)."""

    async def streams(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for kind in ("partial_image", "partial_image", "completed"):
            event = {"type": f"image_generation.{kind}", "b64_json": coded(png())}
            await response.write(b"data: " + to_json(event) + b"\n\n")
        return response

    async with media_server() as server, painting(tmp_path, server) as runtime:
        server.instead = [streams]
        turn = await runtime.send("a cat", options={"partial_images": 2})
        events = await events_of(turn)
    assert len([event for event in events if isinstance(event, FilePartial)]) == 2
    assert (server.fields["stream"], server.fields["partial_images"]) == (True, 2)


# ── the reader ────────────────────────────────────────────────────────────────────────────────────

LONG_TEXTS = st.sampled_from(["A" * (LONG + 9), 'a"\\' * LONG, "é" * LONG, "/+" * LONG])
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5) | LONG_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(VALUES, st.lists(st.integers(1, 70_000), min_size=1, max_size=5))
def test_a_body_that_is_cut_anywhere_says_the_same(value: JsonValue, cuts: list[int]) -> None:
    """W1: escapes and quotes at any cut."""
    data, body, at = to_json(value), WholeBody(), 0
    while at < len(data):
        size = cuts[at % len(cuts)] if at else 1
        body.feed(data[at : at + size])
        at += size
    assert body.value() == value


def test_of_a_torn_body_whole_strings_are_left() -> None:
    """T8"""
    body = WholeBody()
    body.feed(to_json({"data": [{"b64_json": "A" * LONG * 2}, {"b64_json": "B" * LONG * 2}]})[:-9])
    assert body.value(cut=True) == {"data": [{"b64_json": "A" * LONG * 2}, {}]}
