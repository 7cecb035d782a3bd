"""A large file is uploaded to its provider once, and later requests send its ID (M3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import BodyPartReader, web
from pydantic_core import from_json, to_json

from dragoman.errors import ProviderError
from dragoman.messages.events import TextDelta
from dragoman.messages.message import File, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.wires import wire as named_wire
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.files.pictures import FileLimits
from dragoman.wire.files.uploads import DAY, PAUSE, Uploads
from dragoman.wire.http_client.client import HttpClient, Timeouts
from dragoman.wire.http_client.http_model import HttpModel
from tests.patience import PATIENCE
from tests.wire.memory_blobs import MemoryBlobs

LIMITS = FileLimits(upload_above=1000)
BLOBS = {"paper": b"%PDF" + bytes(5000), "photo": b"\x89PNG" + bytes(5000), "note": b"%PDF small"}
PAPER = File("application/pdf", blob="paper", name="paper.pdf", size=5004)
PHOTO = File("image/png", blob="photo", name="photo.png", size=5004)
NOTE = File("application/pdf", blob="note", name="note.pdf", size=10)

REPLIES: dict[str, list[dict[str, Any]]] = {
    "openai_responses": [
        {"type": "response.output_text.delta", "delta": "seen", "output_index": 0, "item_id": "i"},
        {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": {}}},
    ],
    "gemini": [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "seen"}]}, "finishReason": "STOP"}]}
    ],
    "anthropic_messages": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "seen"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
}


@dataclass
class FileServer:
    """Keeps files, and answers questions about those that it has."""

    wire: str
    url: str = ""
    files: dict[str, tuple[dict[str, str], bytes]] = field(default_factory=dict)  # by id: fields, bytes
    uploads: int = 0
    broken: bool = False
    silent: bool = False
    together: asyncio.Barrier | None = None  # for who uploads at the same time
    slow: int = 0  # polls of a file until it is ready
    looks: int = 0
    after: str = "ACTIVE"
    asked: list[str] = field(default_factory=list)  # bodies
    deleted: list[str] = field(default_factory=list)

    async def upload(self, request: web.Request) -> web.StreamResponse:
        self.uploads += 1
        number = self.uploads
        if self.silent:
            await asyncio.Event().wait()
        if self.together is not None:
            await self.together.wait()
        if self.broken:
            key = request.headers.get("Authorization") or request.headers.get("x-api-key")
            message = f"storage is full for {key or request.headers['x-goog-api-key']}"
            return web.json_response({"error": {"message": message}}, status=507)
        self._check_beta(request)
        if self.wire == "gemini":
            return await self._google(request)
        fields: dict[str, str] = {}
        data = b""
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            if part.filename is None:
                fields[str(part.name)] = (await part.read()).decode()
            else:
                data = bytes(await part.read())
                fields["name"], fields["type"] = part.filename, part.headers["Content-Type"]
        id = f"file-{number}"
        self.files[id] = (fields, data)
        return web.json_response({"id": id, "object": "file"})

    async def _google(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["X-Goog-Upload-Protocol"] == "multipart"
        about, file = [part async for part in _parts(await request.multipart())]
        name = from_json(about[1])["file"]["displayName"]
        id = f"{self.url}/files/file-{self.uploads}"
        self.files[id] = ({"name": name, "type": file[0]}, file[1])
        return web.json_response({"file": self._seen(id)})

    async def look(self, request: web.Request) -> web.StreamResponse:
        self.looks += 1
        return web.json_response(self._seen(f"{self.url}/files/{request.match_info['id']}"))

    def _seen(self, id: str) -> dict[str, str]:
        state = "PROCESSING" if self.looks < self.slow else self.after
        return {"name": f"files/{id.rpartition('/')[2]}", "uri": id, "state": state}

    async def delete(self, request: web.Request) -> web.StreamResponse:
        self._check_beta(request)
        self.deleted.append(request.match_info["id"])
        return web.json_response({"id": request.match_info["id"], "type": "file_deleted"})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append(body.decode())
        for part in parts_of(from_json(body)):
            id = part.get("file_id") or part.get("source", {}).get("file_id")
            id = id or part.get("fileData", {}).get("fileUri")
            if id is not None:
                self._check_beta(request)
                if id not in self.files:
                    error = {"type": "not_found_error", "message": f"File not found: {id}"}
                    return web.json_response({"error": error}, status=404)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for frame in REPLIES[self.wire]:
            await response.write(b"data: " + to_json(frame) + b"\n\n")
        return response

    def _check_beta(self, request: web.Request) -> None:
        if self.wire == "anthropic_messages":
            assert "files-api-2025-04-14" in request.headers["anthropic-beta"]
            assert request.headers["anthropic-version"]
        assert "sk-files-0123456789" in str(request.headers)


async def _parts(form: Any) -> AsyncIterator[tuple[str, bytes]]:
    async for part in form:
        yield part.headers["Content-Type"], bytes(await part.read())


def parts_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of all messages of a body."""
    messages = body.get("messages") or body.get("input") or body["contents"]
    contents = [one.get("content") or one["parts"] for one in messages]
    return [part for content in contents if isinstance(content, list) for part in content]


@asynccontextmanager
async def file_server(wire: str) -> AsyncIterator[FileServer]:
    server = FileServer(wire)
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/v1/files", server.upload)
    app.router.add_delete("/v1/files/{id}", server.delete)
    app.router.add_post("/upload/v1/files", server.upload)
    app.router.add_get("/v1/files/{id}", server.look)
    app.router.add_post("/v1/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}/v1"
        yield server
    finally:
        await runner.cleanup()


class Place:
    """A model at such a server, with a clock that the test sets."""

    def __init__(self, server: FileServer, timeouts: Timeouts | None = None) -> None:
        self.now = 1_000_000.0
        self.blobs = MemoryBlobs(BLOBS)
        self.read = self.blobs.read
        shape = ENDPOINTS[server.wire]
        assert isinstance(shape.auth, KeyAuth)
        auth = replace(shape.auth, key="sk-files-0123456789")
        endpoint = replace(shape, base_url=server.url, auth=auth)
        self.client = HttpClient(timeouts=timeouts, clock=lambda: self.now, sleep=self._sleep)
        self.uploads = Uploads(self.client, endpoint, server.wire)
        self.model = HttpModel(
            self.client,
            named_wire(server.wire),
            endpoint,
            model="m",
            attachments=AttachmentReader(self.blobs),
            limits=LIMITS,
            uploads=self.uploads,
        )

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    async def ask(self, *files: File) -> str:
        request = Request("m", (RequestMessage("user", (Text("Look:"), *files)),))
        events = [event async for batch in self.model.stream(request, "msg_1") for event in batch]
        return "".join(event.text for event in events if isinstance(event, TextDelta))


@asynccontextmanager
async def placed(wire: str) -> AsyncIterator[tuple[FileServer, Place]]:
    async with file_server(wire) as server:
        place = Place(server)
        async with place.client:
            yield server, place


both = pytest.mark.parametrize("wire", [*REPLIES])


@both
async def test_a_large_file_goes_once_and_a_small_one_with_each_request(wire: str) -> None:
    """Three steps of a turn make one upload and read the bytes once (M3)."""
    async with placed(wire) as (server, place):
        assert [await place.ask(PAPER, PHOTO, NOTE) for _ in range(3)] == ["seen"] * 3
    assert server.uploads == 2
    kept = {fields["name"]: (fields["type"], data) for fields, data in server.files.values()}
    assert kept == {
        "paper.pdf": ("application/pdf", BLOBS["paper"]),
        "photo.png": ("image/png", BLOBS["photo"]),
    }
    assert sorted(place.read) == ["note", "paper", "photo"]
    for body in server.asked:
        assert len(body) < 2000
        assert "file-1" in body
        assert "JVBERiBzbWFsbA==" in body  # the small one


async def test_a_film_is_used_when_google_has_looked_at_it() -> None:
    """M3: until then it says so."""
    async with placed("gemini") as (server, place):
        server.slow = 3
        assert await place.ask(PAPER) == "seen"
    assert server.looks == 3


async def test_a_film_that_google_cannot_read_goes_along() -> None:
    """M3"""
    async with placed("gemini") as (server, place):
        server.slow, server.after = 1, "FAILED"
        assert await place.ask(PAPER) == "seen"
    assert "file-1" not in server.asked[-1]


async def test_openai_is_told_what_a_file_is_for_and_for_how_long() -> None:
    """Images have the purpose vision, others user data, and the provider deletes them after a day (M3)."""
    async with placed("openai_responses") as (server, place):
        await place.ask(PAPER, PHOTO)
        await place.uploads.close()
    fields = [one for one, _ in server.files.values()]
    assert [one["purpose"] for one in fields] == ["user_data", "vision"]
    assert {one["expires_after[seconds]"] for one in fields} == {str(int(DAY))}
    assert server.deleted == []


async def test_what_anthropic_would_keep_for_ever_is_deleted_in_the_end() -> None:
    """M3"""
    async with placed("anthropic_messages") as (server, place):
        await place.ask(PAPER)
        await place.uploads.close()
    assert server.deleted == ["file-1"]


@both
async def test_a_file_that_is_gone_there_is_uploaded_again(wire: str) -> None:
    """Another program deleted the file, and the user does not notice (M3)."""
    async with placed(wire) as (server, place):
        await place.ask(PAPER)
        server.files.clear()
        assert await place.ask(PAPER) == "seen"
    assert server.uploads == 2
    assert len(server.asked) == 3


@both
async def test_it_is_uploaded_again_only_once(wire: str) -> None:
    """Dragoman retries no further if the server never finds its files (M3)."""
    async with placed(wire) as (server, place):
        server.files = _Leaking()
        with pytest.raises(ProviderError, match="File not found"):
            await place.ask(PAPER)
    assert (server.uploads, len(server.asked)) == (2, 2)


class _Leaking(dict[str, Any]):
    """Keeps nothing."""

    def __setitem__(self, key: str, value: Any) -> None:
        pass


@both
async def test_where_nothing_can_be_uploaded_the_file_goes_along(wire: str) -> None:
    """Dragoman pauses uploads for a while after a failure (M3)."""
    async with placed(wire) as (server, place):
        server.broken = True
        assert [await place.ask(PAPER) for _ in range(2)] == ["seen", "seen"]
        assert (server.uploads, len(server.asked[-1]) > 5000) == (1, True)
        server.broken = False
        place.now += PAUSE + 1
        await place.ask(PAPER)
    assert server.uploads == 2
    assert len(server.asked[-1]) < 2000


async def test_an_id_is_not_used_after_its_day() -> None:
    """M3: OpenAI deletes it then."""
    async with placed("openai_responses") as (server, place):
        await place.ask(PAPER)
        place.now += DAY
        await place.ask(PAPER)
    assert server.uploads == 2
    assert "file-2" in server.asked[-1]


@both
async def test_what_a_server_says_of_a_key_is_not_logged(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    """M3 × O2: some repeat the key that they refuse."""
    caplog.set_level(logging.WARNING)
    async with placed(wire) as (server, place):
        server.broken = True
        await place.ask(PAPER)
    assert "storage is full" in caplog.text
    assert "sk-files-0123456789" not in caplog.text


async def test_a_server_that_takes_a_file_and_says_nothing_holds_nobody_up() -> None:
    """M3: everybody's next large file would wait behind it."""
    async with file_server("openai_responses") as server:
        server.silent = True
        place = Place(server, Timeouts(first_byte=0.5))
        async with place.client, asyncio.timeout(PATIENCE):
            assert await place.ask(PAPER) == "seen"
    assert len(server.asked[-1]) > 5000


async def test_one_file_may_be_sent_as_a_document_and_as_text() -> None:
    """The document goes by its ID, and the text as text (M3)."""
    async with placed("openai_responses") as (server, place):
        text = replace(PAPER, media_type="text/plain", name="paper.txt")
        assert await place.ask(PAPER, text) == "seen"
    assert "file-1" in server.asked[-1]
    assert "[paper.txt]" in server.asked[-1]
