"""M1: in a long conversation a media model gets the current message and the images it works on, no more."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman import BadRequest, ProviderError, Runtime
from dragoman.messages.message import Message, Part, Text
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.media.media_server import coded, form_fields, png, refusal, size_of, streamed, wav
from tests.media.runtimes import put
from tests.patience import PATIENCE

FORBIDDEN, SLOW = "a forbidden thing", "a slow thing"


@dataclass
class Studio:
    """A server for every protocol that makes media. Each image has a different size, which identifies it."""

    asked: list[tuple[str, str, list[str]]] = field(default_factory=list)  # task, prompt, sizes of images
    bodies: list[Any] = field(default_factory=list)
    made: int = 0
    hangs: asyncio.Event = field(default_factory=asyncio.Event)

    def draw(self) -> str:
        self.made += 1
        return coded(png(self.made, 1))

    def note(self, task: str, prompt: str, images: list[bytes]) -> None:
        self.asked.append((task, prompt, [size_of(image) for image in images]))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rpartition("/")[2]
        fields = await form_fields(request)
        self.bodies.append(fields)
        prompt = str(fields.get("prompt") or fields.get("input") or fields.get("instances", ""))
        talks = path in ("completions", "responses")  # there the whole conversation is in the body
        if FORBIDDEN in prompt and not talks:
            self.asked.append(("refused", FORBIDDEN, []))
            return refusal(400, "The safety system rejected it", code="content_policy_violation")
        if SLOW in prompt and not talks:
            self.hangs.set()
            await asyncio.Event().wait()
        match path.rpartition(":")[2]:
            case "generations" | "edits":
                images = fields.get("image[]", fields.get("image", []))
                uploads = images if isinstance(images, list) else [images]
                self.note(path, fields["prompt"], [one.data for one in uploads])
                return web.json_response({"data": [{"b64_json": self.draw()}]})
            case "predict":
                ((instance,),) = (fields["instances"],)
                self.note("generations", instance["prompt"], [])
                return web.json_response({"predictions": [{"bytesBase64Encoded": self.draw()}]})
            case "speech":
                self.note("speech", fields["input"], [])
                return web.Response(body=wav(), content_type="audio/wav")
            case "transcriptions":
                self.note(f"heard {fields['file'].name}", fields.get("prompt", ""), [])
                return web.json_response({"text": "The quick brown fox."})
            case "completions":
                self.note("chat", "", _images_in(fields))
                image = {"image_url": {"url": f"data:image/png;base64,{self.draw()}"}}
                delta = {"content": "Here it is.", "images": [image]}
                return await streamed(request, {"choices": [{"delta": delta, "finish_reason": "stop"}]})
            case "responses":
                self.note("chat", "", _images_in(fields))
                drawn = {"type": "image_generation_call", "id": "ig", "status": "completed"}
                message = {"type": "message", "content": [{"type": "output_text", "text": "Here it is."}]}
                output = [{**drawn, "result": self.draw()}, message]
                return web.json_response({"object": "response", "status": "completed", "output": output})
            case "streamGenerateContent":
                self.note("chat", "", _images_in(fields))
                parts = [
                    {"text": "Here it is."},
                    {"inlineData": {"mimeType": "image/png", "data": self.draw()}},
                ]
                candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}
                return await streamed(request, {"candidates": [candidate]})
            case _:
                return refusal(404, f"nothing is at {request.path}")


def _images_in(value: Any) -> list[bytes]:
    """The images that stand somewhere in a body."""
    if isinstance(value, str):
        data = value.rpartition("base64,")[2]
        return [b64decode(data)] if data.startswith("iVBOR") else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [image for one in inner for image in _images_in(one)]


@asynccontextmanager
async def studio(folder: Path) -> AsyncIterator[tuple[Studio, Runtime]]:
    served = Studio()
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/{path:.*}", served.answer)
    tables: Any = {
        "painter": {"type": "image-gen"},
        "gpt-image-1": {},
        "retoucher": {"type": "image-edit"},
        "speaker": {"type": "audio-tts"},
        "listener": {"type": "audio-stt"},
        "drawer": {"modalities": ["text", "image"], "context": 100_000},
    }
    async with TestServer(app) as server:
        catalog = load_catalog()
        for wire in ("openai_chat", "openai_responses"):
            name, url = wire.removeprefix("openai_"), str(server.make_url(f"/{wire}/v1"))
            own = Provider(name, name, url, wire=wire, models=tables, own=tables, extra=())
            catalog = catalog.with_provider(own)
        moved = replace(catalog.providers["google"], base_url=str(server.make_url("/google")))
        keys = Keys(dict.fromkeys(("chat", "responses", "google"), "key"), use_keyring=False, environment={})
        async with (
            Models(
                "chat/drawer",
                catalog=catalog.with_provider(moved),
                keys=keys,
                client=HttpClient(retry=Retry(attempts=1)),
            ) as models,
            Runtime(folder / "chat.db", model=models) as runtime,
        ):
            yield served, runtime


KINDS = {
    "chat completions": ("chat/drawer", "chat/painter", "chat"),
    "gpt-image": ("chat/drawer", "chat/gpt-image-1", "chat"),
    "responses": ("responses/drawer", "responses/painter", "responses"),
    "google": ("google/gemini-3-pro-image-preview", "google/imagen-4.0-generate-001", "chat"),
}


async def said(chat: ConversationHandle, words: str | list[Part], model: str, **more: Any) -> Message:
    """One whole turn: its answer."""
    turn: TurnHandle[Any] = await chat.send(words, model=model, **more)
    answer: Message = (await turn.result()).messages[-1]
    return answer


async def question_of(runtime: Runtime, turn: TurnHandle[Any]) -> str:
    return (await runtime.store.turn(turn.id)).message


@pytest.mark.parametrize(("drawer", "painter", "others"), KINDS.values(), ids=KINDS)
async def test_each_turn_of_a_long_conversation_sends_its_own_prompt(
    tmp_path: Path, drawer: str, painter: str, others: str
) -> None:
    """M1 × reruns, edits, branches, cancels, refusals and changes of the model."""
    retoucher, speaker, listener = (f"{others}/{name}" for name in ("retoucher", "speaker", "listener"))
    async with studio(tmp_path) as (server, runtime):
        chat = await runtime.conversation()
        await said(chat, "Hello.", drawer)
        first = await said(chat, "a cat", painter)
        turn = await chat.send("a dog", model=painter)
        await turn.result()
        asked = await question_of(runtime, turn)
        await (await chat.rerun(asked)).result()
        await (await chat.edit(asked, "a wolf")).result()
        await said(chat, "make it red", retoucher)
        await said(chat, "Good morning.", speaker)
        with pytest.raises(ProviderError):
            await said(chat, FORBIDDEN, painter)
        await said(chat, "a bird", painter)
        slow = await chat.send(SLOW, model=painter)
        await asyncio.wait_for(server.hangs.wait(), PATIENCE)
        await slow.cancel()
        await slow.reached("cancelled")
        await said(chat, "Good night.", speaker)
        await said(chat, "make it blue", retoucher)
        sent = await put(runtime, png(99, 1), "image/png", "other.png")
        with pytest.raises(ProviderError):
            await said(chat, [Text(FORBIDDEN), sent], retoucher)
        await said(chat, "make it round", retoucher)
        await said(chat, [Text("Ada"), await put(runtime, wav(), "audio/wav", "memo.wav")], listener)
        await said(chat, "Grace", listener)
        await said(chat, "What is there?", drawer)
        await said(chat, "make it square", retoucher)
        await said(chat, "on a branch", painter, parent=first.id)
        await said(chat, "make it a branch", retoucher)
        everything = "".join(map(str, server.bodies[-3:]))
    assert server.asked == [
        ("chat", "", []),
        ("generations", "a cat", []),
        ("generations", "a dog", []),
        ("generations", "a dog", []),
        ("generations", "a wolf", []),
        ("edits", "make it red", ["5x1"]),
        ("speech", "Good morning.", []),
        ("refused", FORBIDDEN, []),
        ("generations", "a bird", []),
        ("speech", "Good night.", []),
        ("edits", "make it blue", ["7x1"]),
        ("refused", FORBIDDEN, []),
        ("edits", "make it round", ["8x1"]),
        ("heard memo.wav", "Ada", []),
        ("heard memo.wav", "Grace", []),
        ("chat", "", server.asked[15][2]),  # a chat model sees the images of the conversation
        ("edits", "make it square", ["10x1"]),
        ("generations", "on a branch", []),
        ("edits", "make it a branch", ["12x1"]),
    ]
    assert {"2x1", "5x1", "7x1", "8x1", "9x1"} <= {*server.asked[15][2]}
    assert "Made by the assistant" not in everything


async def test_nothing_of_a_turn_without_an_answer_is_worked_on(tmp_path: Path) -> None:
    """An image of a refused message is not attached again, and the next send reports that (M1, M2)."""
    async with studio(tmp_path) as (server, runtime):
        chat = await runtime.conversation(model="chat/retoucher")
        sent = await put(runtime, png(99, 1), "image/png", "cat.png")
        with pytest.raises(ProviderError):
            await (await chat.send([Text(FORBIDDEN), sent])).result()
        with pytest.raises(BadRequest, match=r"has no image\. Attach one"):
            await chat.send("make it red")
        await (await chat.send([Text("make it red"), sent])).result()
        await (await chat.send("and rounder")).result()
    assert server.asked == [
        ("refused", FORBIDDEN, []),
        ("edits", "make it red", ["99x1"]),
        ("edits", "and rounder", ["1x1"]),
    ]


async def test_a_summary_or_a_short_history_hides_no_image_from_an_edit(tmp_path: Path) -> None:
    """The setting `history` limits only the messages that chat models receive (M1 × the setting
    `history`)."""
    async with studio(tmp_path) as (server, runtime):
        chat = await runtime.conversation(history=0)
        await said(chat, "a cat", "chat/painter")
        await said(chat, "Fine.", "chat/speaker")
        await said(chat, "make it red", "chat/retoucher")
    assert server.asked[-1] == ("edits", "make it red", ["1x1"])
