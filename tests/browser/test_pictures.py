"""M5: images from models are shown while they are made, enlarged, saved, copied, changed and compared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, FilePayload, expect
from pydantic_core import to_json

from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.browser.studio import choose, opened_studio
from tests.browser.test_reading import faults
from tests.media.media_server import MediaServer, coded, png

pytestmark = MARKS

PICTURE: FilePayload = {"name": "cat.png", "mimeType": "image/png", "buffer": png(40, 30)}


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def studio(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Server, MediaServer]]:
    async with opened_studio(tmp_path_factory.mktemp("studio")) as opened:
        yield opened


@pytest.fixture
def media(studio: tuple[Server, MediaServer]) -> MediaServer:
    return studio[1]


@pytest_asyncio.fixture(loop_scope="session")
async def painter(browser: Browser, studio: tuple[Server, MediaServer]) -> AsyncIterator[Person]:
    permissions = ["clipboard-read", "clipboard-write"]
    async with at_the_page(browser, studio[0], permissions=permissions) as person:
        yield person


@pytest.mark.long
async def test_a_picture_is_seen_while_it_is_made_and_the_whole_takes_its_place(
    painter: Person, media: MediaServer
) -> None:
    """M3"""
    finish = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for kind, picture in (("partial_image", png(30, 20)), ("completed", media.picture)):
            frame = {"type": f"image_generation.{kind}", "b64_json": coded(picture)}
            await response.write(b"data: " + to_json(frame) + b"\n\n")
            if kind == "partial_image":
                await finish.wait()
        return response

    media.instead.append(slowly)
    await choose(painter, "gpt-image-1")
    await painter.say("a blue square")
    partial = painter.by("partial-picture")
    await expect(partial).to_be_visible()
    assert await partial.evaluate("e => e.decode().then(() => e.naturalWidth)") == 30
    finish.set()
    picture = painter.answer.locator("img")
    await expect(picture).to_have_attribute("alt", "a blue square")
    assert await picture.evaluate("e => e.decode().then(() => e.naturalWidth)") == 320
    await expect(partial).to_have_count(0)
    await expect(painter.by("answer-usage")).to_contain_text("1 image")
    await painter.page.reload()
    await expect(painter.answer.locator("img")).to_be_visible()


@pytest.mark.long
async def test_a_picture_is_enlarged_saved_and_copied(painter: Person) -> None:
    """The keyboard works too, and Escape closes only the image (M5)."""
    await choose(painter, "gpt-image-1")
    await painter.say("a blue square")
    await painter.by("enlarge").focus()
    await painter.page.keyboard.press("Enter")
    zoom = painter.by("zoom")
    await expect(zoom).to_be_visible()
    await painter.page.keyboard.press("+")
    await expect(zoom).to_have_attribute("data-zoom", "1.5")
    await painter.page.keyboard.press("0")
    await expect(zoom).to_have_attribute("data-zoom", "1")
    assert await faults(painter) == []
    async with painter.page.expect_download() as saved:
        await zoom.get_by_test_id("save-picture").click()
    assert (await saved.value).suggested_filename.endswith(".png")
    await zoom.get_by_test_id("copy-picture").click()
    await painter.page.wait_for_function(
        """() => navigator.clipboard.read().then(([item]) => item.types.includes("image/png"))"""
    )
    await painter.page.keyboard.press("Escape")
    await expect(zoom).to_have_count(0)
    assert await faults(painter) == []


@pytest.mark.long
async def test_options_go_along_and_several_pictures_are_a_grid(painter: Person, media: MediaServer) -> None:
    """The UI shows the model, its price and the options of its images (M5, M1)."""
    await painter.by("model").click()
    await painter.by("model-search").fill("gpt-image-1")
    choice = painter.page.locator("[data-model='studio/gpt-image-1']")
    await expect(choice.get_by_test_id("model-type")).to_contain_text("makes images")
    await expect(choice).to_contain_text("$0.04 per image")
    assert await faults(painter) == []
    await choice.click()
    await painter.by("open-options").click()
    options = painter.by("media-options")
    await options.get_by_label("How many").fill("99")
    await expect(painter.by("save-options")).to_be_disabled()
    await options.get_by_label("How many").fill("3")
    await options.get_by_label("Quality").select_option(label="low")
    assert await faults(painter) == []
    await painter.by("save-options").click()
    await painter.say("three blue squares")
    await expect(painter.by("picture")).to_have_count(3)
    assert (int(media.fields["n"]), media.fields["quality"]) == (3, "low")
    boxes = [await one.bounding_box() for one in await painter.by("picture").all()]
    assert len({box["y"] for box in boxes if box}) == 1
    await painter.by("enlarge").first.click()
    await painter.page.keyboard.press("ArrowRight")
    await expect(painter.by("zoom")).to_contain_text("2 of 3")
    await painter.page.keyboard.press("Escape")
    await choose(painter, "retoucher")
    await painter.say("redder")  # an option of another model does not follow
    await expect(painter.by("picture")).to_have_count(4)
    assert "quality" not in media.fields


@pytest.mark.long
async def test_a_picture_is_changed_where_it_was_painted_and_versions_are_compared(
    painter: Person, media: MediaServer
) -> None:
    """M5: "edit this" attaches it, and a model that changes images answers."""
    await choose(painter, "gpt-image-1")
    await painter.say("a blue square")
    await expect(painter.by("picture")).to_have_count(1)
    await choose(painter, "reader")
    await painter.by("picture").hover()
    await painter.by("edit-picture").click()
    await expect(painter.by("attachment")).to_have_count(1)
    await expect(painter.by("model")).to_contain_text("retoucher")
    await painter.by("paint-mask").click()
    canvas = painter.by("mask-canvas")
    await expect(canvas).to_be_visible()
    await painter.page.wait_for_function("() => document.querySelector('[data-testid=mask] img').complete")
    await expect(painter.by("use-mask")).to_be_disabled()
    await canvas.hover()
    await painter.page.mouse.down()
    await painter.page.mouse.up()
    await painter.by("clear-mask").click()
    await expect(painter.by("use-mask")).to_be_disabled()
    await canvas.focus()
    for key in ("ArrowLeft", "Space"):
        await painter.page.keyboard.press(key)
    assert await faults(painter) == []
    await painter.by("use-mask").click()
    await expect(painter.by("attachment")).to_have_count(2)
    await expect(painter.by("attachment").last).to_contain_text("-mask.png")
    await painter.say("a red circle in the middle")
    await expect(painter.by("answer")).to_have_count(2)
    await expect(painter.answer.get_by_test_id("picture")).to_have_count(1)
    path, fields = media.asked[-1]
    assert path == "images/edits"
    clear = await painter.page.evaluate(CLEAR_SHARE, coded(fields["mask"].data))
    assert 0 < clear < 0.2
    await painter.answer.hover()
    await painter.by("rerun").last.click()  # immediately, since no other model edits images
    await expect(painter.by("versions").last).to_contain_text("2/2")
    await painter.by("compare-versions").last.click()
    await expect(painter.by("compare").locator("img")).to_have_count(2)
    assert await faults(painter) == []


CLEAR_SHARE = """async data => {
  const bytes = Uint8Array.from(atob(data), sign => sign.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0);
  const {data: pixels} = pen.getImageData(0, 0, picture.width, picture.height);
  let clear = 0;
  for (let at = 3; at < pixels.length; at += 4) clear += pixels[at] < 128;
  return clear / (pixels.length / 4);
}"""


@pytest.mark.long
async def test_what_is_missing_is_said_while_one_types_and_mended_by_a_click(
    painter: Person, media: MediaServer
) -> None:
    """M2"""
    await choose(painter, "retoucher")
    await painter.by("composer-text").fill("make it red")
    await expect(painter.by("modality")).to_contain_text("Attach")
    asked = len(media.asked)
    await painter.by("send").click()
    await expect(painter.by("offer").first).to_be_focused()  # no dead end
    await expect(painter.by("message")).to_have_count(0)
    assert await faults(painter) == []
    async with painter.page.expect_file_chooser() as chooser:
        await painter.by("offer").first.click()
    await (await chooser.value).set_files(PICTURE)
    await expect(painter.by("modality")).to_have_count(0)
    await painter.by("send").click()
    await expect(painter.answer.get_by_test_id("picture")).to_have_count(1)
    assert len(media.asked) == asked + 1
    await expect(painter.by("message").first.locator("img")).to_be_visible()


@pytest.mark.long
async def test_a_picture_for_a_model_that_reads_only_is_offered_one_that_sees(painter: Person) -> None:
    """M2"""
    await choose(painter, "reader")
    await painter.by("attach-file").set_input_files(files=PICTURE)
    await expect(painter.by("modality")).to_contain_text("reader does not take images")
    offer = painter.by("offer").filter(has_text="viewer")
    await offer.click()
    await expect(painter.by("modality")).to_have_count(0)
    await expect(painter.by("model")).to_contain_text("viewer")


async def test_sent_pictures_and_files_stand_at_the_right_in_rows(person: Person) -> None:
    """M5: pictures in one row, chips below them, all at the right edge."""
    note: FilePayload = {"name": f"{'a' * 180}.txt", "mimeType": "text/plain", "buffer": b"hello"}
    wide: FilePayload = {"name": "wide.png", "mimeType": "image/png", "buffer": png(900, 500)}
    await person.by("attach-file").set_input_files(files=[wide, note])
    await expect(person.by("attachment")).to_have_count(2)
    await person.say("hello")
    await person.page.locator("[data-offer=anyway]").click()
    await person.sees("You said: hello")
    said = person.by("message").first
    picture = await said.locator("img").bounding_box()
    chip = await said.locator("a.chip").bounding_box()
    column = await said.bounding_box()
    assert picture
    assert chip
    assert column
    frame = await said.get_by_test_id("enlarge").bounding_box()
    assert frame
    assert frame["width"] - picture["width"] < 4
    assert chip["y"] > picture["y"] + picture["height"]
    assert chip["height"] < 40  # one line, however long the name is
    for box in (picture, chip):
        assert abs(box["x"] + box["width"] - (column["x"] + column["width"])) < 4
