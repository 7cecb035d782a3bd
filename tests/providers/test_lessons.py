"""What a provider refuses is learned from its own words: once, and the request is sent again without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman import BadRequest, ProviderError, Runtime, tool
from dragoman.messages.events import Event
from dragoman.messages.parts import File, Part, Text
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.keys import Keys
from dragoman.providers.models import Models
from dragoman.providers.tables import TraitsTable
from dragoman.wire.http import HttpClient, Retry
from dragoman.wire.quirks import Quirks
from tests.loopback import (
    Answer,
    Body,
    Loopback,
    Reply,
    Script,
    Stream,
    call_piece,
    delta,
    loopback,
    stream,
)
from tests.patience import PATIENCE
from tests.wire.endings.replies import ANSWERS

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass
class Talk:
    """A conversation with a provider that is picky."""

    server: Loopback
    runtime: Runtime
    events: list[Event] = field(default_factory=list)

    async def say(self, said: Any = "Hi", **options: Any) -> str:
        turn = await self.runtime.send(said, **options)
        self.events += [event async for event in turn.events()]
        return (await turn.result()).text

    async def picture(self, type: str = "image/png", data: bytes = PNG, name: str = "cat.png") -> File:
        return File(type, blob=await self.runtime.store.put_blob(data), name=name, size=len(data))

    @property
    def learned(self) -> list[str]:
        return [event.text for event in self.events if event.type == "notice" and event.kind == "learned"]


class Picky:
    """Refuses a body until it no longer holds what is refused; then answers."""

    def __init__(self, refuses: Callable[[Body], bool], reply: Reply, *, wire: str = CHAT) -> None:
        self.refuses, self.reply, self.wire = refuses, reply, wire

    def __call__(self, body: Body) -> Reply:
        return self.reply if self.refuses(body) else ANSWERS[self.wire]("Hello.")


def says_no(message: str, status: int = 400, **more: Any) -> Answer:
    return Answer(status, {"error": {"message": message, "type": "invalid_request_error", **more}})


async def talk(
    folder: Path,
    *script: Script,
    then: Callable[[Talk], Any],
    wire: str = CHAT,
    known: TraitsTable | None = None,
    quirks: dict[str, Any] | None = None,
    **settings: Any,
) -> Talk:
    async with loopback(*script) as server:
        known = known or {"spills": "none", "reasoning": "apart"}
        provider = Provider(
            "acme", "Acme", server.url, wire=wire, defaults=known, quirks=Quirks(**quirks or {})
        )
        models = Models(
            "acme/model",
            catalog=load_catalog().with_provider(provider),
            keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
            client=HttpClient(retry=Retry(attempts=2, first_wait=0.01)),
        )
        runtime = Runtime(folder / "chat.db", model=models, allow=["*"], **settings)
        async with asyncio.timeout(PATIENCE), models, runtime:
            talked = Talk(server, runtime)
            await then(talked)
        return talked


# ── fields ────────────────────────────────────────────────────────────────────────────────────────


class Lesson(NamedTuple):
    wire: str
    options: dict[str, Any]
    error: Answer
    refused: str  # the field that is gone afterwards
    instead: str | None = None


def has(body: Body, path: str) -> bool:
    group, _, name = path.rpartition(".")
    return name in (body.get(group, {}) if group else body)


LESSONS = [
    Lesson(
        CHAT,
        {"max_tokens": 50},
        says_no("Unknown parameter: 'max_completion_tokens'.", param="max_completion_tokens"),
        "max_completion_tokens",
        "max_tokens",
    ),
    Lesson(
        CHAT,
        {"max_tokens": 50},
        Answer(
            422,
            {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are not permitted"}]},
        ),
        "max_completion_tokens",
        "max_tokens",
    ),
    Lesson(CHAT, {}, says_no("Unrecognized request argument supplied: stream_options"), "stream_options"),
    Lesson(CHAT, {}, says_no("property 'stream_options' is unsupported"), "stream_options"),
    Lesson(
        CHAT,
        {"temperature": 0.2},
        says_no(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) "
            "value is supported."
        ),
        "temperature",
    ),
    Lesson(CHAT, {"top_p": 0.5}, says_no("Unsupported parameter: 'top_p'"), "top_p"),
    Lesson(CHAT, {"stop": ["END"]}, says_no("stop is not supported with this model"), "stop"),
    Lesson(
        CHAT,
        {"presence_penalty": 0.5},
        says_no("Argument not supported on this model: presencePenalty"),
        "presence_penalty",
    ),
    Lesson(CHAT, {"seed": 3}, says_no("seed: Extra inputs are not permitted", 422), "seed"),
    Lesson(
        CHAT,
        {"reasoning_effort": "low"},
        says_no('"tiny:1b" does not support thinking'),
        "reasoning_effort",
    ),
    Lesson(
        RESPONSES,
        {"reasoning_effort": "low"},
        says_no("Unsupported parameter: 'reasoning.effort' is not supported with this model."),
        "reasoning.effort",
    ),
    Lesson(RESPONSES, {}, says_no("Encrypted content is not supported with this model."), "include"),
    Lesson(
        MESSAGES, {"temperature": 0.2}, says_no("`temperature` is deprecated for this model."), "temperature"
    ),
    Lesson(
        GEMINI,
        {"reasoning_effort": "low"},
        says_no("Thinking level is not supported for this model."),
        "generationConfig.thinkingConfig",
    ),
    Lesson(
        GEMINI,
        {"presence_penalty": 0.5},
        says_no("Invalid JSON payload received. Unknown name \"presencePenalty\" at 'generation_config'"),
        "generationConfig.presencePenalty",
    ),
]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda one: f"{one.wire}-{one.refused}")
async def test_a_field_that_is_refused_is_left_out_from_then_on(tmp_path: Path, lesson: Lesson) -> None:
    """R9: it is said which, and the next turn does not even try it."""

    async def twice(talked: Talk) -> None:
        assert [await talked.say(options=lesson.options) for _ in range(2)] == ["Hello.", "Hello."]

    picky = Picky(lambda body: has(body, lesson.refused), lesson.error, wire=lesson.wire)
    talked = await talk(tmp_path, picky, then=twice, wire=lesson.wire)
    assert [has(body, lesson.refused) for body in talked.server.bodies] == [True, False, False]
    (notice,) = talked.learned
    assert lesson.refused in notice
    assert lesson.instead is None or lesson.instead in talked.server.bodies[-1]


async def test_what_nobody_takes_is_refused_in_the_end(tmp_path: Path) -> None:
    """R9: there is an end to it."""

    async def once(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="unknown"):
            await talked.say(options={"temperature": 0.5, "top_p": 0.5, "max_tokens": 9})

    no = says_no(
        "unknown parameters: 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'messages'"
    )
    talked = await talk(tmp_path, no, then=once)
    assert len(talked.server.bodies) <= 6


async def test_what_a_person_asked_the_answer_to_be_is_not_left_out(tmp_path: Path) -> None:
    """R8: who asks for a form must not get another."""

    async def once(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="response_format"):
            await talked.say(options={"response_schema": {"type": "object"}})

    talked = await talk(tmp_path, says_no("Unsupported parameter: 'response_format'"), then=once)
    assert len(talked.server.bodies) == 1


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model. Supported values "
        "are: 'low'.",
        "reasoning_effort: must be one of 'low', 'medium'. Unexpected value: 'high'",
        "Invalid value: 'high'. Supported values are: 'none' and 'low' (reasoning_effort)",
    ],
)
async def test_a_wrong_value_says_nothing_of_the_field(tmp_path: Path, message: str) -> None:
    """R9: the person hears of it, and another value is sent as it is."""

    async def twice(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="reasoning_effort"):
            await talked.say(options={"reasoning_effort": "high"})
        assert await talked.say(options={"reasoning_effort": "low"}) == "Hello."

    picky = Picky(lambda body: body["reasoning_effort"] == "high", says_no(message))
    talked = await talk(tmp_path, picky, then=twice)
    assert [body["reasoning_effort"] for body in talked.server.bodies] == ["high", "low"]


async def test_turns_that_run_side_by_side_learn_it_once(tmp_path: Path) -> None:
    """R9: one that was sent before the lesson is sent again, too."""

    async def both(talked: Talk) -> None:
        said = [talked.say(options={"temperature": 0.5}) for _ in range(4)]
        assert await asyncio.gather(*said) == ["Hello."] * 4

    picky = Picky(lambda body: "temperature" in body, says_no("Unsupported parameter: 'temperature'"))
    talked = await talk(tmp_path, picky, then=both)
    assert len(talked.learned) == 1


async def test_an_error_that_teaches_nothing_is_an_error(tmp_path: Path) -> None:
    """T8: also where it speaks of a field."""

    async def once(talked: Talk) -> None:
        with pytest.raises(ProviderError, match="at most 4096"):
            await talked.say(options={"max_tokens": 100_000})

    no = says_no("max_tokens is too large: 100000. This model supports at most 4096 completion tokens.")
    talked = await talk(tmp_path, no, then=once)
    assert (len(talked.server.bodies), talked.learned) == (1, [])


# ── system prompts and tools ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "error",
    [
        says_no("System role not supported", 500),
        says_no("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        says_no("Only user and assistant roles are supported!"),
    ],
    ids=["template", "o1", "gemma"],
)
async def test_a_system_prompt_that_is_refused_stands_in_the_first_message(
    tmp_path: Path, error: Answer
) -> None:
    """R2"""

    async def once(talked: Talk) -> None:
        assert await talked.say(system="Be kind.") == "Hello."

    picky = Picky(lambda body: body["messages"][0]["role"] == "system", error)
    talked = await talk(tmp_path, picky, then=once)
    (message,) = talked.server.messages()
    assert message["role"] == "user"
    assert "Be kind." in message["content"]
    assert message["content"].endswith("Hi")


async def test_a_model_without_calls_writes_them_and_that_is_told(tmp_path: Path) -> None:
    """D1"""

    @tool
    def ping() -> str:
        """Say pong."""
        return "pong"

    async def once(talked: Talk) -> None:
        assert await talked.say() == "Hello."

    picky = Picky(lambda body: "tools" in body, says_no("acme/model does not support tools"))
    talked = await talk(tmp_path, picky, then=once, tools=[ping])
    assert len(talked.server.bodies) == 2
    assert "write them as text" in talked.learned[0]


@pytest.mark.parametrize(
    "message",
    [
        "Schemas are too complex. Please reduce the number of tools or the complexity of their schemas.",
        "tools.0.custom.strict: Extra inputs are not permitted",
        "The compiled grammar is too large, which would cause performance issues.",
        "Too many optional parameters in strict tool schemas.",
    ],
)
async def test_schemas_that_are_too_much_to_be_held_to_are_only_shown(tmp_path: Path, message: str) -> None:
    """R9"""

    @tool
    def ping(word: str) -> str:
        """Say pong."""
        return word

    async def twice(talked: Talk) -> None:
        assert [await talked.say(model="acme/claude-sonnet-4-5") for _ in range(2)] == ["Hello.", "Hello."]

    def is_strict(body: Body) -> bool:
        return any("strict" in one for one in body["tools"])

    picky = Picky(is_strict, says_no(message), wire=MESSAGES)
    talked = await talk(tmp_path, picky, then=twice, wire=MESSAGES, tools=[ping])
    assert [is_strict(body) for body in talked.server.bodies] == [True, False, False]
    assert len(talked.learned) == 1


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def shows_image(body: Body) -> bool:
    return "image_url" in str(body["messages"])


@pytest.mark.parametrize(
    "error",
    [
        says_no("Invalid content type. image_url is only supported by certain models."),
        says_no("unknown variant `image_url`, expected `text` at line 1 column 200", 422),
        says_no("image input is not supported - hint: you may need to provide the mmproj", 500),
        says_no("No endpoints found that support image input", 404),
        says_no("acme/model is not a multimodal model"),
        says_no("At most 0 image(s) may be provided in one request."),
        says_no("'messages.1' : value must be a string: content must be a string"),
    ],
    ids=lambda answer: str(answer.body["error"]["message"])[:30],
)
async def test_a_model_that_turns_out_to_be_blind_is_told_of_pictures(tmp_path: Path, error: Answer) -> None:
    """M2: a line stands in their place, and the next one is refused before it is stored."""

    async def twice(talked: Talk) -> None:
        picture = await talked.picture()
        assert await talked.say([Text("Look:"), picture]) == "Hello."
        with pytest.raises(BadRequest, match="cannot be shown"):
            await talked.say([picture])

    talked = await talk(tmp_path, Picky(shows_image, error), then=twice)
    assert len(talked.server.bodies) == 2
    assert "[cat.png, image/png, which this model cannot be shown]" in talked.server.messages()[-1]["content"]


async def test_one_picture_that_cannot_be_read_says_nothing_of_others(tmp_path: Path) -> None:
    """M2: it does not poison its conversation, and the next one is shown."""

    async def talking(talked: Talk) -> None:
        assert await talked.say([Text("Look:"), await talked.picture()]) == "Hello."
        assert await talked.say([Text("And this:"), await talked.picture()]) == "Hello."

    broken = says_no("You uploaded an unsupported image. Please make sure your image is valid.")
    talked = await talk(tmp_path, Picky(shows_image, broken), then=talking)
    assert [shows_image(body) for body in talked.server.bodies] == [True, False, True, False]


TEXT_ONLY: TraitsTable = {"modalities": ["text"], "spills": "none", "reasoning": "apart"}


@pytest.mark.parametrize(
    ("known", "type", "name"),
    [
        (TEXT_ONLY, "image/png", "cat.png"),
        (TEXT_ONLY, "application/pdf", "report.pdf"),
        (None, "image/bmp", "cat.bmp"),
        (None, "image/tiff", "cat.tiff"),
        (None, "application/zip", "all.zip"),
        (None, "application/octet-stream", "data.bin"),
        (None, "video/mp4", "film.mp4"),
    ],
)
async def test_what_a_model_cannot_take_is_refused_before_anything_is_stored(
    tmp_path: Path, known: TraitsTable | None, type: str, name: str
) -> None:
    """M2: in a new message, in a new version of one, and in what steers."""

    async def trying(talked: Talk) -> None:
        chat = await talked.runtime.conversation()
        turn = await chat.send("Hi")
        await turn.result()
        before = await chat.messages()
        file = await talked.picture(type, name=name)
        with pytest.raises(BadRequest, match=name):
            await chat.send([Text("Look:"), file])
        with pytest.raises(BadRequest, match=name):
            await chat.edit(before[0].id, [file])
        with pytest.raises(BadRequest, match=name):
            await turn.steer([file])
        assert await chat.messages() == before

    await talk(tmp_path, ANSWERS[CHAT]("Hello."), then=trying, known=known)


@pytest.mark.parametrize(
    ("type", "name"),
    [
        ("application/json", "a.json"),
        ("text/csv", "a.csv"),
        ("image/svg+xml", "a.svg"),
        ("application/octet-stream", "main.zig"),
    ],
)
async def test_text_of_any_type_is_taken_by_every_model(tmp_path: Path, type: str, name: str) -> None:
    """M2"""

    async def once(talked: Talk) -> None:
        file = await talked.picture(type, b"what it says", name)
        assert await talked.say([Text("Read:"), file]) == "Hello."

    talked = await talk(tmp_path, ANSWERS[CHAT]("Hello."), then=once, known=TEXT_ONLY)
    assert talked.server.messages()[-1]["content"] == f"Read:\n\n[{name}]\nwhat it says"


async def test_a_picture_in_the_history_of_another_model_becomes_a_line(tmp_path: Path) -> None:
    """M2, R5: and so does one that a tool brought."""

    async def talking(talked: Talk) -> None:
        store = talked.runtime.store
        chat = await talked.runtime.conversation()
        blob = await store.put_blob(PNG)
        said: list[Part] = [Text("Look:"), File("image/png", blob=blob, name="cat.png")]
        await (await chat.send(said, model="seeing/model")).result()
        assert (await (await chat.send("And now?")).result()).text == "Hello."

    async with loopback(ANSWERS[CHAT]("A cat.")) as other:
        async with loopback(ANSWERS[CHAT]("Hello.")) as server:
            catalog = load_catalog().with_provider(
                Provider("acme", "Acme", server.url, local=True, defaults=TEXT_ONLY)
            )
            catalog = catalog.with_provider(Provider("seeing", "Seeing", other.url, local=True))
            models = Models("acme/model", catalog=catalog, keys=Keys(use_keyring=False))
            async with models, Runtime(tmp_path / "chat.db", model=models) as runtime:
                await talking(Talk(server, runtime))
        assert shows_image(other.bodies[0])
        assert "[cat.png, image/png, which this model cannot be shown]" in str(server.messages()[1])


async def test_a_queued_message_cannot_be_changed_into_what_is_refused(tmp_path: Path) -> None:
    """M2, T13"""

    async def queueing(talked: Talk) -> None:
        chat = await talked.runtime.conversation()
        first = await chat.send("Hi")
        queued = await chat.send("And then?", queue=True)
        file = await talked.picture("application/zip", name="all.zip")
        with pytest.raises(BadRequest, match="zip"):
            await talked.runtime.commands.change_queued(queued.id, [file])
        await first.cancel()
        assert (await queued.result()).text == "Hello."

    stalls = Stream((), then="stalls")
    talked = await talk(tmp_path, stalls, ANSWERS[CHAT]("Hello."), then=queueing)
    assert talked.server.messages()[-1]["content"].endswith("And then?")


async def test_a_server_that_wants_no_thoughts_back_is_sent_them_once(tmp_path: Path) -> None:
    """W4, R9: what it sent goes back with the call, under its name, until it refuses that."""

    @tool
    def clock() -> str:
        """What time it is."""
        return "noon"

    def thinks(body: Body) -> bool:
        return any("reasoning_content" in message for message in body["messages"])

    called = stream(delta(reasoning_content="Hm."), call_piece("clock", "{}", id="c"), delta("tool_calls"))
    refuses = Picky(thinks, says_no("property 'messages.2.reasoning_content' is unsupported"))
    talked = await talk(tmp_path, called, refuses, refuses, called, refuses, then=asks_twice, tools=[clock])
    second, third, *_ = (body["messages"] for body in talked.server.bodies[1:])
    assert second[-2]["reasoning_content"] == "Hm."
    assert "reasoning_content" not in third[-2]
    assert talked.learned == ["acme/model does not take messages.reasoning_content: it is left out"]
    assert not thinks(talked.server.bodies[-1])


async def asks_twice(talked: Talk) -> None:
    assert await talked.say("What time is it?") == "Hello."
    assert await talked.say("And now?") == "Hello."


async def test_summaries_of_thoughts_that_nobody_may_have_are_not_asked_for_again(tmp_path: Path) -> None:
    """R9"""
    refused = says_no("Your organization must be verified to generate reasoning summaries. Please go to: …")
    picky = Picky(lambda body: "summary" in body.get("reasoning", {}), refused, wire=RESPONSES)
    options = {"reasoning_summary": "auto", "reasoning_effort": "low"}

    async def asks(talked: Talk) -> None:
        assert await talked.say(options=options) == "Hello."

    talked = await talk(tmp_path, picky, picky, then=asks, wire=RESPONSES)
    assert talked.server.bodies[-1]["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
async def test_tools_that_are_refused_as_strict_are_sent_without_it(tmp_path: Path, wire: str) -> None:
    """R9: and a null for what is optional is still none."""

    @tool
    def clock(zone: str = "UTC") -> str:
        """What time it is."""
        return f"noon in {zone}"

    def strict(body: Body) -> bool:
        return any(sent.get("function", sent).get("strict") for sent in body["tools"])

    refused = says_no("Invalid schema for function 'clock': In context=(), it is odd.")
    picky = Picky(strict, refused, wire=wire)

    async def asks(talked: Talk) -> None:
        assert await talked.say() == "Hello."

    talked = await talk(
        tmp_path, picky, picky, then=asks, wire=wire, quirks={"strict_tools": True}, tools=[clock]
    )
    assert [strict(body) for body in talked.server.bodies] == [True, False]
    assert len(talked.learned) == 1
