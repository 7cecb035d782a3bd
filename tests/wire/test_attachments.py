"""Dragoman reads and encodes attachments off the event loop, as rarely as possible."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from dragoman.errors import ConfigError, NotFound, Unreadable
from dragoman.messages.message import CallState, File, Part, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.wires import WIRES
from dragoman.wire.endpoint import ENDPOINTS, Endpoint
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.files.file_parts import Attachments
from dragoman.wire.http_client.body import LARGE, PIECE, is_large, write, write_large
from dragoman.wire.http_client.client import HttpClient, Retry
from dragoman.wire.http_client.exchange import Exchange
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.http_client.payload import Payload
from dragoman.wire.openai_chat import OpenAIChat
from dragoman.wire.scripted import says
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.wire.memory_blobs import MemoryBlobs

IMAGE = File("image/png", blob="image")
NOTE = File("text/plain", blob="note")
FILM = File("video/mp4", blob="film")
SAID = b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
BLOBS = {"image": b"\x89PNG", "note": "für später".encode(), "film": b"moov"}


def blobs_of(**blobs: bytes) -> MemoryBlobs:
    return MemoryBlobs(blobs or BLOBS)


def asking(*parts: Part) -> Request:
    return Request("acme/m", (RequestMessage("user", (Text("Look:"), *parts)),))


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sent(payload: Payload) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in payload.pieces()])

    return asyncio.run(read())


# ── what is read ──────────────────────────────────────────────────────────────────────────────────


async def test_s4_text_is_read_as_text_and_the_rest_as_base64() -> None:
    reader = AttachmentReader(blobs_of())
    attachments = await reader.read(asking(IMAGE, NOTE), OpenAIChat())
    assert (attachments.base64, attachments.texts) == (
        {"image": coded(BLOBS["image"])},
        {"note": "für später"},
    )


async def test_s4_what_a_call_brought_back_is_read_too_unless_the_model_may_not_see_it() -> None:
    def call(state: CallState) -> ToolCall:
        result = ToolResult("done", attachments=(IMAGE,))
        return ToolCall("call_1", "draw", state=state, result=result)

    for state, read in ((CallState.COMPLETED, ["image"]), (CallState.WITHHELD, [])):
        blobs = blobs_of()
        request = Request("acme/m", (RequestMessage("assistant", (call(state),)),))
        await AttachmentReader(blobs).read(request, OpenAIChat())
        assert blobs.read == read


@pytest.mark.parametrize("wire", WIRES)
async def test_s4_only_what_the_wire_can_carry_is_read(wire: str) -> None:
    """A video that the body cannot hold is not read, and each read file is used in full (S4)."""
    files = (IMAGE, NOTE, FILM, File("application/pdf", blob="note"), File("audio/wav", blob="image"))
    blobs = blobs_of()
    encoding = WIRES[wire]()
    attachments = await AttachmentReader(blobs).read(asking(*files), encoding)
    body = json.dumps(encoding.encode(asking(*files), attachments))
    assert ("film" in blobs.read) is (wire in ("gemini", "bedrock_converse"))
    assert all(value in body for value in attachments.base64.values())


# ── how often ─────────────────────────────────────────────────────────────────────────────────────


async def test_s4_each_file_is_read_once_for_all_steps_of_a_turn() -> None:
    blobs = blobs_of()
    reader = AttachmentReader(blobs)
    first = await reader.read(asking(IMAGE, NOTE, IMAGE), OpenAIChat())
    for _ in range(3):
        assert await reader.read(asking(IMAGE, NOTE), OpenAIChat()) == first
    assert blobs.read == ["image", "note"]


async def test_s4_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    blobs = blobs_of(a=b"a" * 30, b=b"b" * 30, c=b"c" * 30)
    reader = AttachmentReader(blobs, remembered=700)  # two of them, with what it takes to know them

    async def read(*names: str) -> list[str]:
        blobs.read.clear()
        await reader.read(asking(*(File("image/png", blob=name) for name in names)), OpenAIChat())
        return [*blobs.read]

    assert await read("a", "b") == ["a", "b"]
    assert await read("a") == []
    assert await read("c") == ["c"]  # in the place of b
    assert await read("a", "c") == []
    assert await read("a", "b", "c") == ["b"]  # exceeds the cache: cached files are used


async def test_s4_two_runtimes_may_share_a_model_and_each_has_its_store() -> None:
    first, second = blobs_of(image=b"one"), blobs_of(note=b"two")
    reader = AttachmentReader()
    with pytest.raises(ConfigError, match="no store to read it from"):
        await reader.read(asking(IMAGE), OpenAIChat())
    for blobs in (first, second, second):
        reader.use(blobs)
    assert (await reader.read(asking(IMAGE), OpenAIChat())).base64 == {"image": coded(b"one")}
    assert (await reader.read(asking(NOTE), OpenAIChat())).texts == {"note": "two"}
    with pytest.raises(NotFound, match="Unknown blob 'film'"):
        await reader.read(asking(replace(IMAGE, blob="film")), OpenAIChat())


# ── who has to wait ───────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def others() -> AsyncIterator[list[int]]:
    """Run another task on the same event loop that counts its turns."""
    turns = [0]

    async def run() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(run())
    try:
        yield turns
    finally:
        task.cancel()


class Watched(HttpClient):
    """Notes how many turns others had before the first request was ready."""

    def __init__(self, turns: list[int]) -> None:
        super().__init__()
        self.before = 0
        self._turns = turns

    def exchange(self, endpoint: Endpoint, model: str, **more: Any) -> Exchange:
        self.before = self.before or self._turns[0]
        return super().exchange(endpoint, model, **more)


class Slow(bytes):
    """It takes others ten turns of the event loop to read."""

    let_go = False

    def decode(self, *how: Any, **more: Any) -> str:
        self.let_go = self.enough.wait(PATIENCE)
        return super().decode(*how, **more)

    @cached_property
    def enough(self) -> threading.Event:
        return threading.Event()


async def test_s4_others_have_their_turn_while_a_large_text_is_read() -> None:
    """The read waits for other tasks, so on the event loop it would never end (S4)."""
    note = Slow(bytes(100_000))

    async def have_turns() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        note.enough.set()

    await asyncio.gather(AttachmentReader(blobs_of(note=note)).read(asking(NOTE), OpenAIChat()), have_turns())
    assert note.let_go


async def test_s4_others_have_their_turn_while_a_large_body_is_written() -> None:
    async with loopback(says("seen")) as server, others() as turns:
        endpoint = replace(ENDPOINTS["openai_chat"], base_url=server.url)
        async with Watched(turns) as client:
            model = HttpModel(client, OpenAIChat(), endpoint, model="m")
            async for _ in model.stream(asking(Text("x" * 20_000_000)), "msg_1"):
                pass
    assert client.before > 10
    assert len(str(server.messages())) > 20_000_000


@pytest.mark.parametrize("wire", WIRES)
async def test_s4_a_large_file_is_read_when_it_is_sent_and_sent_again(wire: str) -> None:
    """No request holds the whole file, and a retry sends the same bytes (S4, M3)."""
    data = random.Random(wire).randbytes(1_000_001)
    blobs, encoding = blobs_of(image=data), WIRES[wire]()
    attachments = await AttachmentReader(blobs).read(asking(IMAGE), encoding)
    assert blobs.read == []
    whole = Attachments(base64={"image": coded(data)})
    payload = write_large(encoding.encode(asking(IMAGE), attachments), attachments.contents)
    for _ in range(2):
        pieces = [piece async for piece in payload.pieces()]
        assert b"".join(pieces) == to_json(encoding.encode(asking(IMAGE), whole))
        assert payload.size == sum(map(len, pieces))
        assert max(map(len, pieces)) < 600_000
    assert blobs.read == ["image", "image"]
    assert await payload.sha256() == hashlib.sha256(b"".join(pieces)).hexdigest()


async def test_s4_a_request_that_is_asked_again_sends_its_files_again() -> None:
    """S4: with their length, which not every server can do without."""
    data = random.Random(1).randbytes(2_000_000)
    seen: list[tuple[str | None, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append((request.headers.get("Content-Length"), await request.text()))
        if len(seen) == 1:
            return web.Response(status=503)
        return web.Response(body=SAID, content_type="text/event-stream")

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/chat/completions", answer)
    async with TestServer(app) as server, HttpClient(retry=Retry(first_wait=0.001)) as client:
        endpoint = replace(ENDPOINTS["openai_chat"], base_url=str(server.make_url("")))
        reader = AttachmentReader(blobs_of(image=data))
        model = HttpModel(client, OpenAIChat(), endpoint, model="m", attachments=reader)
        async for _ in model.stream(asking(IMAGE), "msg_1"):
            pass
    (length, body), again = seen
    assert coded(data) in body
    assert (length, body) == again == (str(len(body)), body)


async def test_s4_a_file_that_breaks_while_it_is_sent_ends_the_request_with_the_reason() -> None:
    """The provider never gets a complete body with other bytes than the stored ones (S4)."""

    class Broken(MemoryBlobs):
        async def blob_pieces(self, key: str) -> AsyncIterator[bytes]:
            yield b"x" * 300_000
            raise Unreadable("blob", key, "its bytes have changed since it was stored")

    reader = AttachmentReader(Broken({"image": bytes(2_000_000)}))
    async with loopback(says("seen")) as server, HttpClient() as client:
        endpoint = replace(ENDPOINTS["openai_chat"], base_url=server.url)
        model = HttpModel(client, OpenAIChat(), endpoint, model="m", attachments=reader)
        with pytest.raises(Unreadable, match="its bytes have changed"):
            await anext(model.stream(asking(IMAGE), "msg_1"))
    assert server.bodies == []


# ── the bytes ─────────────────────────────────────────────────────────────────────────────────────

long_texts = st.builds(
    lambda text, times: text * times,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.just(PIECE // 7),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9) | long_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=3))
def test_a_large_body_is_the_same_bytes_as_a_small_one(body: dict[str, Any]) -> None:
    assert sent(write_large(body)) == to_json(body) == write(body)


def test_half_a_character_in_a_large_body_becomes_the_replacement_character() -> None:
    text = "\ud83d" + "x" * PIECE
    assert json.loads(sent(write_large({"text": text, "short": "\ude00"}))) == {
        "text": "\N{REPLACEMENT CHARACTER}" + "x" * PIECE,
        "short": "\N{REPLACEMENT CHARACTER}",
    }


def test_a_request_is_large_by_its_texts_results_and_addresses() -> None:
    long = "x" * (LARGE + 1)
    result = ToolCall("call_1", "read", state=CallState.COMPLETED, result=ToolResult(long))
    for part in (Text(long), result, File("image/png", url=f"data:image/png;base64,{long}")):
        assert is_large(asking(part))
    assert not is_large(asking(Text("short"), IMAGE))
