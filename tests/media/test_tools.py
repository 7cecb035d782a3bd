"""M4: a chat model has other models make and change pictures, speak and listen, by tools that cost money."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ToolContext, allow_once, tool
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.events import CallProgress, Event, StepRetry
from dragoman.messages.media import ModelType
from dragoman.messages.message import CallState, Message, Part, Text, ToolCall
from dragoman.messages.request import Request
from dragoman.plugins.limits import Budget
from dragoman.providers.models import Models
from dragoman.wire.scripted import Line, ScriptedModel, calls, says
from dragoman.wire.wire import Model
from tests.media.media_server import MediaServer, fails, media_server, png, wav
from tests.media.runtimes import events_of, models_of, put


class Both:
    """The models of the media server, and one that talks by a script."""

    def __init__(self, server: MediaServer, *script: Line) -> None:
        self.models = models_of(server)
        self.talker = ScriptedModel(list(script))
        self.of_type: Callable[[ModelType], list[str]] = self.models.of_type

    def __call__(self, name: str | None = None) -> Model:
        return self.talker if name in (None, self.talker.name) else self.models(name)

    def use_blobs(self, read: Any) -> None:
        self.models.use_blobs(read)


async def test_making_a_picture_is_asked_about_and_shown(tmp_path: Path) -> None:
    """M4: it costs money. The picture is an attachment of the result, and its cost is with it."""
    async with media_server() as server:
        script = calls("make_image", prompt="A blue square!", size="1024x1024"), says("There.")
        model = Both(server, *script)
        async with model.models, Runtime(tmp_path / "chat.db", model=model, tools=["media"]) as runtime:
            turn = await runtime.send("draw")
            assert await turn.reached("waiting")
            (question,) = await runtime.questions()
            assert question.tool == "make_image"
            assert server.asked == []
            await runtime.answer(question.id, allow_once())
            events = await events_of(turn)
            (call,) = calls_of((await turn.result()).messages)
            assert call.result is not None
            (file,) = call.result.attachments
            assert await runtime.store.blob(file.blob or "") == server.picture
    assert (file.name, call.result.metadata["model"]) == ("a-blue-square.png", "acme/gpt-image-1")
    assert call.result.metadata["usage"]["images"] == 1  # type: ignore[index,call-overload]
    shown = [event.value for event in events if isinstance(event, CallProgress)]
    assert [one["partial"]["media_type"] for one in shown] == ["image/png"] * 2  # type: ignore[index,call-overload]
    assert server.fields["size"] == "1024x1024"


async def run(folder: Path, server: MediaServer, *script: Line, said: Any = ()) -> list[ToolCall]:
    model = Both(server, *script)
    async with Runtime(folder / "chat.db", model=model, tools=["media"], allow=["media.*"]) as runtime:
        parts: Any = (
            said if isinstance(said, str) else [Text("go"), *[await put(runtime, *one) for one in said]]
        )
        result = await (await runtime.send(parts)).result()
    await model.models.close()
    return calls_of(result.messages)


def calls_of(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.calls]


async def test_a_picture_of_the_conversation_is_changed_and_the_change_changed_again(tmp_path: Path) -> None:
    """The model names an image or uses the latest, and an image of a call belongs to the conversation, too
    (M4)."""
    script = (
        calls("edit_image", prompt="add a hat", images=["cat.png"], mask="spot.png"),
        calls("edit_image", prompt="larger"),
        says("Done."),
    )
    async with media_server() as server:
        server.picture = png(8, 8)
        pictures = [(png(), "image/png", "cat.png"), (png(4, 4), "image/png", "spot.png")]
        first, second = await run(tmp_path, server, *script, said=pictures)
    assert (first.state, second.state) == (CallState.COMPLETED, CallState.COMPLETED)
    assert server.asked[0][1]["mask"].data == png(4, 4)
    assert server.asked[1][1]["image"].data == png(8, 8)


async def test_a_recording_is_written_down_and_a_text_spoken(tmp_path: Path) -> None:
    """M4"""
    script = (calls("transcribe", language="en"), calls("speak", text="Hello.", voice="nova"), says("Done."))
    async with media_server() as server:
        heard, spoken = await run(tmp_path, server, *script, said=[(wav(), "audio/wav", "memo.wav")])
    assert heard.result is not None
    assert heard.result.text == "The quick brown fox."
    assert heard.result.metadata["transcript"]["language"] == "english"  # type: ignore[index,call-overload]
    assert spoken.result is not None
    assert [file.name for file in spoken.result.attachments] == ["hello.wav"]


async def test_a_model_that_a_tool_asks_does_not_see_what_is_private(tmp_path: Path) -> None:
    """The call has the real value, as every call has, and the other model receives its placeholder
    (M4 x R3)."""
    script = (
        calls("make_image", prompt="a card for [[name]]"),
        calls("speak", text="Ada [[name]]"),
        says("There."),
    )
    async with media_server() as server:
        model = Both(server, *script)
        async with (
            model.models,
            Runtime(
                tmp_path / "chat.db",
                model=model,
                tools=["media"],
                allow=["media.*"],
                private={"name": "Lovelace"},
            ) as runtime,
        ):
            made = calls_of((await (await runtime.send("draw")).result()).messages)
    assert [call.state for call in made] == [CallState.COMPLETED] * 2
    assert [call.arguments for call in made] == [{"prompt": "a card for Lovelace"}, {"text": "Ada Lovelace"}]
    assert "Lovelace" not in repr(server.asked)
    assert "a card for [[name]]" in repr(server.asked)


async def test_what_pictures_cost_counts_in_the_limits_of_the_turn(tmp_path: Path) -> None:
    """This also holds if the text price is unknown: two images are paid for, and a third is not made (M4 ×
    T12)."""
    script = [calls("make_image", prompt=f"picture {n}") for n in range(3)]
    async with media_server() as server:
        model = Both(server, *script, says("Enough."))
        model.of_type = lambda _: ["acme/dall-e-3"]  # four cents each
        plugins = [Budget(max_cost=0.08)]
        async with Runtime(
            tmp_path / "chat.db", model=model, tools=["media"], allow=["media.*"], plugins=plugins
        ) as runtime:
            result = await (await runtime.send("draw")).result()
        await model.models.close()
    assert [path for path, _ in server.asked] == ["images/generations"] * 2
    assert [call.state for call in calls_of(result.messages)] == [
        CallState.COMPLETED,
        CallState.COMPLETED,
        CallState.SKIPPED,
    ]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (calls("transcribe"), "This conversation has no recording."),
        (
            calls("edit_image", prompt="x", images=["dog.png"]),
            "This conversation has no picture called 'dog.png'.",
        ),
        (calls("make_image", prompt="x"), "rejected by the safety system"),
    ],
)
async def test_the_model_reads_why_nothing_was_made(tmp_path: Path, call: Line, why: str) -> None:
    """M4 × C5: it may try again."""
    async with media_server() as server:
        server.instead = [fails(400, "Your request was rejected by the safety system.")]
        (failed,) = await run(tmp_path, server, call, says("Sorry."))
    assert failed.state is CallState.FAILED
    assert failed.result is not None
    assert why in failed.result.text


class Painter(ScriptedModel):
    """A custom model that answers at the second attempt."""

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        yield (StepRetry(2, 3, 0.0, "it was busy"),)
        async for events in super().stream(request, reply):
            yield events


class Choosy(Painter):
    def check_message(self, parts: Sequence[Part], earlier: object = ()) -> None:
        raise BadRequest("Not this one.")


class Custom:
    """A custom function for models, with a list of them or without."""

    def __init__(self, talker: ScriptedModel, painter: Model | None, names: Sequence[str]) -> None:
        self.talker, self.painter = talker, painter
        if painter is not None or names:
            self.of_type = lambda _: names

    def __call__(self, name: str | None = None) -> Model:
        if name in (None, self.talker.name):
            return self.talker
        if self.painter is None:
            raise NotFound("model", str(name))
        return self.painter


@pytest.mark.parametrize(
    ("painter", "names", "said", "retries"),
    [
        (Painter([says("A square.")], type="image-gen"), ["p"], "A square.", ["it was busy"]),
        (Choosy([], name="p", type="image-gen"), ["p"], "p: Not this one.", []),
        (None, ["p"], "'p'", []),
        (None, [], "No model of type 'image-gen' is set up.", []),
        (Painter([]), [], "No model of type 'image-gen' is set up.", []),
    ],
    ids=["answers", "refuses", "unknown", "no list", "empty list"],
)
async def test_a_tool_asks_a_model_of_a_custom_function(
    tmp_path: Path, painter: Model | None, names: Sequence[str], said: str, retries: list[str]
) -> None:
    """M4"""

    @tool
    async def paint(context: ToolContext) -> str:
        """Paint."""
        return (await context.ask_model("image-gen", [Text("a square")], {})).text

    model = Custom(ScriptedModel([calls("paint"), says("ok")]), painter, names)
    async with Runtime(tmp_path / "chat.db", model=model, tools=[paint], allow=["*"]) as runtime:
        turn = await runtime.send("draw")
        events = await events_of(turn)
        (call,) = calls_of((await turn.result()).messages)
    assert call.result is not None
    assert said in call.result.text
    assert [event.reason for event in events if isinstance(event, StepRetry)] == retries


async def test_tools_are_there_for_what_models_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tool needs a configured model of its type (M4)."""
    monkeypatch.setenv("GROQ_API_KEY", "gsk-0123456789")
    for name in ("OPENAI_API_KEY", "XAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings = Settings({"store": str(tmp_path / "a.db"), "workspace": str(tmp_path)})
    async with Models("groq/openai/gpt-oss-20b") as models:
        runtime = build_runtime(settings, model=models).runtime
    offered = {tool.name for group in runtime.services.toolbox.groups for tool in group.tools}
    assert {"make_image", "edit_image", "speak", "transcribe"} & offered == {"transcribe"}
