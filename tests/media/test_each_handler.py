"""M1: a turn of any model type can fail, be cancelled, killed, resumed, repeated and edited like any
other."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic_core import to_json

from dragoman import ProviderError, Runtime
from dragoman.messages.events import StepRetry
from dragoman.messages.message import Part, Text
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from tests.fork_server import KILL, python
from tests.media.media_server import Handler, MediaServer, coded, fails, media_server, png, wav
from tests.media.runtimes import events_of, made, media_runtime, put
from tests.patience import PATIENCE


@dataclass(frozen=True)
class Task:
    """A request for one kind of model, and the beginning of its reply."""

    model: str
    path: str
    attached: str = ""  # the type of a file that goes along
    begins: bytes = b""
    kind: str = "text/event-stream"

    async def parts(self, runtime: Runtime, words: str) -> list[Part]:
        if not self.attached:
            return [Text(words)]
        data = png() if self.attached == "image/png" else wav()
        return [Text(words), await put(runtime, data, self.attached, f"a.{self.attached.partition('/')[2]}")]


def frame(**event: Any) -> bytes:
    return b"data: " + to_json(event) + b"\n\n"


PICTURE = coded(png())
TASKS = {
    "image-gen": Task(
        "acme/gpt-image-1",
        "images/generations",
        begins=frame(type="image_generation.partial_image", b64_json=PICTURE),
    ),
    "image-edit": Task(
        "acme/gpt-image-1",
        "images/edits",
        "image/png",
        frame(type="image_edit.partial_image", b64_json=PICTURE),
    ),
    "audio-stt": Task(
        "acme/gpt-4o-transcribe",
        "audio/transcriptions",
        "audio/wav",
        frame(type="transcript.text.delta", delta="The "),
    ),
    "audio-tts": Task("acme/tts-1", "audio/speech", begins=wav(2.0)[:30_000], kind="audio/wav"),
}
each = pytest.mark.parametrize("task", TASKS.values(), ids=[*TASKS])


def begins_and(task: Task, end: str) -> Handler:
    """Begins as the model would, and breaks off, or never ends."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": task.kind})
        await response.prepare(request)
        await response.write(task.begins)
        if end == "hangs":
            await asyncio.Event().wait()
        assert request.transport is not None
        request.transport.abort()
        return response

    return handler


async def ask(
    runtime: Runtime, task: Task, words: str = "Foxes."
) -> tuple[ConversationHandle, TurnHandle[Any]]:
    chat = await runtime.conversation(model=task.model)
    return chat, await chat.send(await task.parts(runtime, words))


async def answer_of(runtime: Runtime, turn: TurnHandle[Any], server: MediaServer) -> None:
    """It is whole."""
    result = await turn.result()
    assert result.state == "completed"
    if server.asked[-1][0] == "audio/transcriptions":
        assert result.text.strip() == server.heard
    else:
        ((_, data),) = await made(runtime, turn)
        assert data in (server.picture, server.sound)


@each
@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Invalid value: 'x'.", "invalid_request"),
        ("Your request was rejected by the safety system.", "filter"),
    ],
    ids=["wrong", "moderation"],
)
async def test_a_refusal_is_in_the_providers_words_and_asked_once(
    tmp_path: Path, task: Task, message: str, kind: str
) -> None:
    """M1: a value that is wrong, and moderation."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [fails(400, message)]
        _, turn = await ask(runtime, task)
        with pytest.raises(ProviderError, match=message[:20]) as raised:
            await turn.result()
    assert (raised.value.kind, [path for path, _ in server.asked]) == (kind, [task.path])


@each
async def test_a_busy_provider_is_asked_again(tmp_path: Path, task: Task) -> None:
    """M1 × W5: the same form a second time."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [fails(429, "Rate limit reached", code="rate_limit_exceeded")]
        _, turn = await ask(runtime, task)
        events = await events_of(turn)
        await answer_of(runtime, turn, server)
    assert [event.status for event in events if isinstance(event, StepRetry)] == [429]
    assert server.asked[0] == server.asked[1]


@each
async def test_of_half_an_answer_only_speech_is_kept_and_a_rerun_gives_a_whole_one(
    tmp_path: Path, task: Task
) -> None:
    """M1 × T8, T14: half a picture shows nothing, half a sound can be heard."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [begins_and(task, "breaks")]
        chat, turn = await ask(runtime, task)
        with pytest.raises(ProviderError, match="broke in the middle"):
            await turn.result()
        messages, _ = await runtime.store.messages(chat.id)
        kept = [file for message in messages if message.role == "assistant" for file in message.files]
        expected = ["audio"] if task.model == "acme/tts-1" else []
        assert [file.media_type.partition("/")[0] for file in kept] == expected
        question = next(message for message in messages if message.role == "user")
        await answer_of(runtime, await chat.rerun(question.id), server)
    first, second = (fields for _, fields in server.asked)
    assert first == second


@each
async def test_it_is_cancelled_in_the_middle(tmp_path: Path, task: Task) -> None:
    """M1 × T6: nothing half-made stays."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        server.instead = [begins_and(task, "hangs")]
        _, turn = await ask(runtime, task)
        await asyncio.wait_for(server.began.wait(), PATIENCE)
        await turn.cancel()
        result = await turn.result()
    assert result.state == "cancelled"
    assert not any(message.files for message in result.messages if message.role == "assistant")


@each
async def test_an_edited_message_is_answered_anew(tmp_path: Path, task: Task) -> None:
    """M1 × T14: with the file that came with it, and other words."""
    async with media_server() as server, media_runtime(tmp_path, server) as runtime:
        chat, turn = await ask(runtime, task)
        await turn.result()
        messages, _ = await runtime.store.messages(chat.id)
        question = next(message for message in messages if message.role == "user")
        parts: list[Part] = [Text("Hares."), *question.files]
        await answer_of(runtime, await chat.edit(question.id, parts), server)
    said = [fields.get("prompt") or fields.get("input") for _, fields in server.asked]
    assert said == ["Foxes.", "Hares."]
    files = [[fields.get("image"), fields.get("file")] for _, fields in server.asked]
    assert files[0] == files[1]


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.media.media_server import MediaServer
from tests.media.runtimes import media_runtime
from tests.media.test_each_handler import TASKS, ask

async def main(folder, url, task):
    async with media_runtime(Path(folder), MediaServer(url)) as runtime:
        _, turn = await ask(runtime, TASKS[task])
        print(turn.id, flush=True)
        await turn.result()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TASKS])
async def test_a_process_is_killed_and_another_takes_its_turn_up(tmp_path: Path, name: str) -> None:
    """Nothing of the reply was stored, so it is requested again with the same file (M1 × T9)."""
    async with media_server() as server:
        server.instead = [begins_and(TASKS[name], "hangs")]
        process = await asyncio.create_subprocess_exec(
            *python("-c", PROGRAM, str(tmp_path), server.url, name), stdout=PIPE
        )
        assert process.stdout is not None
        turn = (await process.stdout.readline()).decode().strip()
        await asyncio.wait_for(server.began.wait(), PATIENCE)
        process.send_signal(KILL)
        await process.wait()
        async with media_runtime(tmp_path, server) as runtime:
            await answer_of(runtime, runtime.turn(turn), server)
    first, second = (fields for _, fields in server.asked)
    assert first == second
