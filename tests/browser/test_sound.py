"""M5: audio is recorded, transcribed, played and read aloud, by models or by the browser itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page, chromium
from tests.browser.studio import MICROPHONE, choose, opened_studio
from tests.browser.test_reading import faults
from tests.media.media_server import MediaServer, mp3, speaks_slowly, wav
from tests.patience import eventually

pytestmark = MARKS


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def studio(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Server, MediaServer]]:
    async with opened_studio(tmp_path_factory.mktemp("studio")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def hearing() -> AsyncIterator[Browser]:
    async with chromium(*MICROPHONE) as browser:
        yield browser


@pytest.fixture
def media(studio: tuple[Server, MediaServer]) -> MediaServer:
    return studio[1]


@pytest_asyncio.fixture(loop_scope="session")
async def speaker(hearing: Browser, studio: tuple[Server, MediaServer]) -> AsyncIterator[Person]:
    async with at_the_page(hearing, studio[0], permissions=["microphone"]) as person:
        yield person


@pytest_asyncio.fixture(loop_scope="session")
async def listener(browser: Browser, studio: tuple[Server, MediaServer]) -> AsyncIterator[Person]:
    """Without a microphone, in the browser that is there already."""
    async with at_the_page(browser, studio[0]) as person:
        yield person


async def record(person: Person) -> None:
    """Until something was heard: the microphone of this browser beeps once a second."""
    await person.by("microphone").click()
    await expect(person.by("recording")).to_have_attribute("data-state", "on")
    await person.page.wait_for_function("() => document.querySelector('[data-testid=level]')?.value > 0.02")
    await expect(person.by("recorded")).not_to_have_text("0:00")


@pytest.mark.long
async def test_what_is_recorded_is_attached_and_written_down(speaker: Person, media: MediaServer) -> None:
    """The UI shows level and time, and a recording can be cancelled (M5)."""
    await choose(speaker, "whisper-large-v3")
    await speaker.by("composer-text").fill("names: Ada")
    await expect(speaker.by("modality")).to_contain_text("Attach a recording")
    await record(speaker)
    assert await faults(speaker) == []
    await speaker.by("cancel-recording").click()
    await expect(speaker.by("recording")).to_have_count(0)
    await expect(speaker.by("attachment")).to_have_count(0)
    await record(speaker)
    await speaker.by("attach-recording").click()
    await expect(speaker.by("attachment")).to_contain_text(".wav")
    await expect(speaker.by("modality")).to_have_count(0)
    await speaker.say("names: Ada")
    await speaker.sees("The quick brown fox.")
    heard = media.fields["file"]
    assert heard.data[:4] == b"RIFF"
    assert any(heard.data[44:])
    await expect(speaker.by("message").first.get_by_test_id("sound")).to_be_visible()
    await expect(speaker.by("transcript")).to_contain_text("english")
    await expect(speaker.by("wave")).to_be_visible()
    assert await faults(speaker) == []


@pytest.mark.long
async def test_dictation_writes_into_the_field_and_leaves_no_conversation_behind(
    speaker: Person, media: MediaServer
) -> None:
    """M5: by the model that listens."""
    before = [one["id"] for one in (await speaker.told("/api/conversations"))["items"]]
    await speaker.by("composer-text").fill("I saw this:")
    await record(speaker)
    await speaker.by("transcribe").click()
    await expect(speaker.by("composer-text")).to_have_value("I saw this: The quick brown fox.")
    assert media.asked[-1][0] == "audio/transcriptions"
    same = """before => fetch("/api/conversations").then(answer => answer.json())
        .then(({items}) => JSON.stringify(items.map(({id}) => id)) === before)"""
    await speaker.until(same, json.dumps(before, separators=(",", ":")))
    await expect(speaker.by("message")).to_have_count(0)


@pytest.mark.long
async def test_a_spoken_answer_is_played_sought_in_and_sped_up(speaker: Person, media: MediaServer) -> None:
    """M5"""
    media.sound = wav(8.0)
    await choose(speaker, "tts-1")
    await speaker.say("Hello there.")
    sound = speaker.answer.get_by_test_id("sound")
    await expect(sound.get_by_test_id("time")).to_have_text("0:00 / 0:08")
    await sound.get_by_test_id("speed").select_option(label="2×")
    await sound.get_by_test_id("play").click()
    await expect(sound).to_have_attribute("data-playing", "true")
    assert await sound.locator("audio").evaluate("e => e.playbackRate") == 2
    await sound.get_by_test_id("play").click()
    await expect(sound).to_have_attribute("data-playing", "false")
    await sound.get_by_test_id("position").fill("5")
    await expect(sound.get_by_test_id("time")).to_have_text("0:05 / 0:08")
    assert await sound.locator("audio").evaluate("e => e.currentTime") == pytest.approx(5, abs=0.1)
    await expect(speaker.by("answer-usage")).to_contain_text("12 characters spoken")
    assert await faults(speaker) == []


async def test_an_answer_is_read_aloud_by_the_model_that_speaks(listener: Person, media: MediaServer) -> None:
    """M5: until it is over, or stopped."""
    media.sound = wav(60)
    await listener.say("hello")
    await listener.sees("How can I help?")
    await listener.answer.hover()
    button = listener.by("read-aloud").last
    await button.click()
    await expect(button).to_have_attribute("data-reading", "true")
    spoken = ("audio/speech", "Hello! How can I help?")
    await eventually(lambda: [(path, fields.get("input")) for path, fields in media.asked].count(spoken) == 1)
    await button.click()
    await expect(button).to_have_attribute("data-reading", "false")
    media.sound = wav(0.2)
    await button.click()
    await eventually(lambda: [(path, fields.get("input")) for path, fields in media.asked].count(spoken) == 2)
    await expect(button).to_have_attribute("data-reading", "false")
    await expect(listener.by("toast")).to_have_count(0)


@pytest.mark.long
async def test_a_spoken_answer_is_heard_while_it_comes_and_goes_on_in_its_player(
    speaker: Person, media: MediaServer
) -> None:
    """The audio starts before the model has ended, and the player continues at the same position (M5)."""
    media.sound, go_on = wav(120.0), asyncio.Event()
    media.instead = [speaks_slowly(media, 30_000, go_on)]
    await choose(speaker, "tts-1")
    await speaker.say("A long story.")
    await speaker.by("listen").click()
    await expect(speaker.by("listen")).to_have_attribute("data-heard", "true")
    assert not go_on.is_set()
    go_on.set()
    sound = speaker.answer.get_by_test_id("sound")
    await expect(sound).to_have_attribute("data-playing", "true")
    assert 0 < await sound.locator("audio").evaluate("e => e.currentTime") < 60
    await sound.get_by_test_id("play").click()
    await expect(sound).to_have_attribute("data-playing", "false")
    assert await faults(speaker) == []


@pytest.mark.long
async def test_an_answer_is_read_aloud_before_the_model_has_spoken_all_of_it(
    speaker: Person, media: MediaServer
) -> None:
    """M5: here as MP3, which the browser takes in pieces."""
    await speaker.say("hello")
    await speaker.sees("How can I help?")
    media.sound, go_on = mp3(30.0), asyncio.Event()
    media.instead = [speaks_slowly(media, 30_000, go_on)]
    await speaker.answer.hover()
    button = speaker.by("read-aloud").last
    await button.click()
    await expect(button).to_have_attribute("data-heard", "true")
    assert not go_on.is_set()
    go_on.set()
    await button.click()
    await expect(button).to_have_attribute("data-reading", "false")
    await expect(speaker.by("toast")).to_have_count(0)


@pytest.mark.long
async def test_sound_is_dropped_into_the_message(speaker: Person) -> None:
    """M5: and pasted, by the same way."""
    drop = """bytes => {
      const file = new File([Uint8Array.from(bytes)], "memo.wav", {type: "audio/wav"});
      const data = new DataTransfer();
      data.items.add(file);
      const event = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
      document.body.dispatchEvent(event);
    }"""
    await expect(speaker.by("microphone")).to_be_visible()  # appears together with the attachment button
    await speaker.page.evaluate(drop, list(wav(0.1)))
    await expect(speaker.by("attachment")).to_contain_text("memo.wav")


SPEECH = """
window.spoken = [];
Object.defineProperty(window, "speechSynthesis", {value: {
  getVoices: () => [{name: "voice"}],
  cancel: () => {},
  speak: (one) => { window.spoken.push(one.text); setTimeout(() => one.onend(), 10) },
}});
window.webkitSpeechRecognition = window.SpeechRecognition = class {
  start() { setTimeout(() => this.onresult({results: [[{transcript: "hello"}]]}), 10) }
  stop() { this.onend() }
};
"""


@pytest.mark.long
async def test_without_models_the_browser_itself_listens_and_reads(browser: Browser, server: Server) -> None:
    """The browser uses its own speech. A headless browser has none, so the test substitutes it (M5)."""
    async with at_the_page(browser, server) as person:
        await person.page.add_init_script(SPEECH)
        await person.page.reload()
        await person.by("microphone").click()
        await expect(person.by("dictating")).to_be_visible()
        await expect(person.by("composer-text")).to_have_value("hello")
        await person.by("end-dictation").click()
        await expect(person.by("dictating")).to_have_count(0)
        await person.by("composer-text").press("Enter")
        await person.sees("How can I help?")
        await person.answer.hover()
        await person.by("read-aloud").click()
        await expect(person.by("read-aloud")).to_have_attribute("data-reading", "false")
        await person.page.wait_for_function("() => window.spoken.join(' ') === 'Hello! How can I help?'")


@pytest.mark.long
async def test_a_film_is_no_sound(speaker: Person) -> None:
    """If no model here takes a file, the UI leads to the list of models (M2)."""
    await choose(speaker, "reader")
    film: FilePayload = {"name": "a.mp4", "mimeType": "video/mp4", "buffer": b"film"}
    await speaker.by("attach-file").set_input_files(files=film)
    await expect(speaker.by("modality")).to_contain_text("does not take video")
    await speaker.by("offer").click()
    await expect(speaker.by("models")).to_be_visible()
