"""M1: Google's Imagen, at both of its addresses, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman import ProviderError, Runtime
from dragoman.errors import BadRequest
from dragoman.messages.events import StepRetry
from dragoman.messages.message import Text
from dragoman.providers.catalog import load_catalog
from dragoman.providers.listing import read_list
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.media.media_server import coded, png
from tests.media.runtimes import events_of, made, put

KEY = "google-key-0123456789"
MODEL = "google/imagen-4.0-generate-001"
FILTERED = "The picture was filtered because of your current safety settings. Support codes: 29310472"


@dataclass
class Google:
    """A server that gives prepared answers and records requests."""

    answers: list[tuple[int, Any]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""

    async def predict(self, request: web.Request) -> web.StreamResponse:
        assert KEY in str(request.headers)
        assert request.query_string == ""
        self.asked.append((request.path, await request.json()))
        status, body = self.answers.pop(0)
        return web.json_response(body, status=status)


@asynccontextmanager
async def google(folder: Path, *answers: tuple[int, Any]) -> AsyncIterator[tuple[Google, Runtime]]:
    server = Google(list(answers))
    app = web.Application()
    app.router.add_post("/{path:.*}", server.predict)
    async with TestServer(app) as running:
        catalog = load_catalog()
        for name in ("google", "vertex"):
            moved = replace(catalog.providers[name], base_url=str(running.make_url(f"/{name}")))
            catalog = catalog.with_provider(moved)
        keys = Keys({"google": KEY, "vertex": KEY}, use_keyring=False, environment={})
        client = HttpClient(retry=Retry(attempts=2, first_wait=0.01))
        async with (
            Models(MODEL, catalog=catalog, keys=keys, client=client) as models,
            Runtime(folder / "chat.db", model=models) as runtime,
        ):
            yield server, runtime


def predicted(*pictures: bytes | str) -> tuple[int, Any]:
    """Return a response with images, and with the reasons for filtered ones."""
    return 200, {
        "predictions": [
            {"mimeType": "image/png", "bytesBase64Encoded": coded(one)}
            if isinstance(one, bytes)
            else {"raiFilteredReason": one}
            for one in pictures
        ]
    }


async def test_pictures_are_made_counted_and_paid_for(tmp_path: Path) -> None:
    """Several images arrive at the same time, in the requested shape (M1, M3)."""
    async with google(tmp_path, predicted(png(2, 2), png(3, 3))) as (server, runtime):
        turn = await runtime.send("a dragon", options={"n": 2, "size": "1792x1344", "format": "jpeg"})
        files = await made(runtime, turn)
        usage = (await turn.result()).usage
    assert [(file.name, data) for file, data in files] == [
        ("image-1.png", png(2, 2)),
        ("image-2.png", png(3, 3)),
    ]
    assert (usage.images, usage.cost) == (2, 0.08)
    assert server.asked == [
        (
            "/google/models/imagen-4.0-generate-001:predict",
            {
                "instances": [{"prompt": "a dragon"}],
                "parameters": {
                    "sampleCount": 2,
                    "includeRaiReason": True,
                    "aspectRatio": "4:3",
                    "sampleImageSize": "2K",
                    "outputOptions": {"mimeType": "image/jpeg"},
                },
            },
        )
    ]


async def test_vertex_has_it_at_another_address(tmp_path: Path) -> None:
    """Options that only this provider knows are sent, too (M1)."""
    async with google(tmp_path, predicted(png())) as (server, runtime):
        chat = await runtime.conversation(model="vertex/imagen-4.0-fast-generate-001")
        turn = await chat.send("a dragon", options={"seed": 7, "aspect_ratio": "16:9"})
        assert (await turn.result()).usage.cost == 0.02
    path, body = server.asked[0]
    assert path == "/vertex/publishers/google/models/imagen-4.0-fast-generate-001:predict"
    assert body["parameters"]["seed"] == 7
    assert body["parameters"]["addWatermark"] is False
    assert body["parameters"]["aspectRatio"] == "16:9"


async def test_pictures_that_were_filtered_are_told_and_not_paid_for(tmp_path: Path) -> None:
    """The answer has the other images, and text about the filtered ones (M1)."""
    async with google(tmp_path, predicted(png(), FILTERED)) as (_, runtime):
        turn = await runtime.send("two", options={"n": 2})
        result = await turn.result()
        assert len(await made(runtime, turn)) == 1
    assert result.text == f"One picture is missing: {FILTERED}"
    assert (result.usage.images, result.finish) == (1, "stop")


@pytest.mark.parametrize("answer", [predicted(FILTERED), (200, {})], ids=["with a reason", "without"])
async def test_where_all_were_filtered_the_answer_says_so(tmp_path: Path, answer: Any) -> None:
    """M1: Google answers with nothing at all, or with why."""
    async with google(tmp_path, answer) as (_, runtime):
        turn = await runtime.send("something")
        result = await turn.result()
    assert (result.finish, result.usage.images) == ("safety", 0)
    reason = str(result.messages[-1].metadata["reason"])
    assert reason == (FILTERED if answer[1] else "all pictures were filtered")


async def test_an_error_is_told_in_googles_words_and_a_busy_one_asked_again(tmp_path: Path) -> None:
    """M1 × T5"""
    refused = {
        "error": {"code": 400, "message": "Imagen is only for billed users.", "status": "INVALID_ARGUMENT"}
    }
    busy = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}
    async with google(tmp_path, (400, refused), (429, busy), predicted(png())) as (_, runtime):
        with pytest.raises(ProviderError, match="only for billed users"):
            await (await runtime.send("a dragon")).result()
        turn = await runtime.send("a dragon")
        events = await events_of(turn)
        assert len(await made(runtime, turn)) == 1
    assert [type(event) for event in events].count(StepRetry) == 1


async def test_what_it_cannot_do_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    """M2: pictures to change, shapes it does not have, words it does not know."""
    async with google(tmp_path) as (server, runtime):
        picture = await put(runtime, png(), "image/png", "cat.png")
        with pytest.raises(BadRequest, match=r"does not take cat\.png"):
            await runtime.send([Text("a hat"), picture])
        with pytest.raises(BadRequest, match="Imagen makes images of 1:1, 3:4"):
            await runtime.send("a dragon", options={"size": "1000x300"})
        with pytest.raises(BadRequest, match="quality"):
            await runtime.send("a dragon", options={"quality": "high"})
        assert server.asked == []
        for conversation in await runtime.conversations():
            assert (await runtime.store.messages(conversation.id))[0] == []


def test_googles_own_list_tells_which_models_make_pictures() -> None:
    """M1"""
    listed = read_list(
        {
            "models": [
                {"name": "models/imagen-9", "supportedGenerationMethods": ["predict"]},
                {"name": "models/gemini-9", "supportedGenerationMethods": ["generateContent"]},
            ]
        }
    )
    assert listed is not None
    assert {one.id: one.type for one in listed} == {"imagen-9": "image-gen", "gemini-9": None}
