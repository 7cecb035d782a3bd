"""M5: a user speaks into the microphone, is transcribed, and hears an answer, with real voices."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from dragoman.wire.scripted import Line, says
from tests.browser.stage import MARKS, Person, at_the_page, chromium
from tests.browser.studio import MICROPHONE, choose, opened_studio
from tests.loopback import Body
from tests.media.speech_server import NEEDS_SPEECH, SpeechServer, hear, speak
from tests.patience import eventually

pytestmark = [*MARKS, NEEDS_SPEECH]

ASKED, ANSWERED = "what is the weather in london today", "open the door and turn on the light"
PHRASES = (ASKED, ANSWERED, "one two three four five")


def weatherman(body: Body) -> Line:
    """Answers the one question he knows."""
    asked = body["messages"][-1]["content"]
    words = asked if isinstance(asked, str) else " ".join(part.get("text", "") for part in asked)
    return says(ANSWERED if "what is the weather" in words else "I did not understand.")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def spoken_to(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Person, SpeechServer]]:
    folder = tmp_path_factory.mktemp("spoken")
    microphone = folder / "microphone.wav"
    microphone.write_bytes(await speak(ASKED))
    media = SpeechServer(phrases=PHRASES)
    flag = f"--use-file-for-fake-audio-capture={microphone}%noloop"  # silence after it, as from a person
    async with (
        opened_studio(folder, weatherman, media) as (server, _),
        chromium(*MICROPHONE, flag) as browser,
        at_the_page(browser, server, permissions=["microphone"]) as person,
    ):
        yield person, media


@pytest.mark.long
async def test_a_spoken_question_is_understood_answered_and_read_aloud(
    spoken_to: tuple[Person, SpeechServer],
) -> None:
    """M5: microphone → recording → transcription → chat → speech → a sound in which the answer is heard."""
    person, media = spoken_to
    await person.by("microphone").click()
    await expect(person.by("recorded")).to_have_text("0:06", timeout=60_000)
    await person.by("transcribe").click()
    field = person.by("composer-text")
    await expect(field).to_have_value(re.compile("what is the weather"), timeout=60_000)
    await field.press("Enter")
    await person.sees(ANSWERED)
    await person.answer.hover()
    await person.by("read-aloud").last.click()
    await eventually(lambda: media.sounds)
    assert await hear(media.sounds[-1], *PHRASES) == ANSWERED
    await expect(person.by("read-aloud").last).to_have_attribute("data-reading", "false", timeout=60_000)
    await expect(person.by("toast")).to_have_count(0)


@pytest.mark.long
async def test_what_a_model_speaks_is_heard_from_its_answer(
    spoken_to: tuple[Person, SpeechServer],
) -> None:
    """The page plays the generated audio, and the audio contains the written text (M3)."""
    person, media = spoken_to
    await person.by("new-conversation").first.click()
    await choose(person, "tts-1")
    await person.say(ANSWERED)
    sound = person.answer.get_by_test_id("sound")
    await expect(sound).to_be_visible(timeout=60_000)
    await sound.get_by_test_id("play").click()
    await expect(sound).to_have_attribute("data-playing", "true")
    address = await sound.locator("audio").evaluate("one => one.currentSrc || one.src")
    played = await person.page.evaluate(
        "address => fetch(address).then(one => one.arrayBuffer()).then(one => [...new Uint8Array(one)])",
        address,
    )
    assert bytes(played) == media.sounds[-1]
    assert await hear(bytes(played), *PHRASES) == ANSWERED
