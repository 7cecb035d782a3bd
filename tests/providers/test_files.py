"""A file that a model cannot take is refused before it is stored, or a line of text replaces it (M2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import BadRequest, Runtime
from dragoman.messages.message import File, Part, Text
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.catalog_tables import TraitsTable
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from tests.loopback import (
    Answer,
    Body,
    Stream,
    loopback,
)
from tests.providers.picky import CHAT, PNG, Picky, Talk, says_no, talk
from tests.wire.endings.replies import ANSWERS


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
    """A line of text replaces the images, and the next image is refused before it is stored (M2)."""

    async def twice(talked: Talk) -> None:
        picture = await talked.picture()
        assert await talked.say([Text("Look:"), picture]) == "Hello."
        with pytest.raises(BadRequest, match="does not take"):
            await talked.say([picture])

    talked = await talk(tmp_path, Picky(shows_image, error), then=twice)
    assert len(talked.server.bodies) == 2
    assert "[cat.png, image/png, which this model cannot be shown]" in talked.server.messages()[-1]["content"]


async def test_one_picture_that_cannot_be_read_says_nothing_of_others(tmp_path: Path) -> None:
    """The invalid image does not break its conversation, and the next one is sent (M2)."""

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
