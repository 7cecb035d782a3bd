"""Dragoman shrinks images for a model with a size limit, and leaves the stored file unchanged (M3)."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest

from dragoman.errors import BadRequest
from dragoman.messages.events import Notice
from dragoman.messages.message import File, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.catalog import load_catalog
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.files.file_parts import Attachments
from dragoman.wire.files.pictures import NO_LIMITS, FileLimits, fit_picture, is_too_large
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.openai_chat import OpenAIChat
from dragoman.wire.scripted import says
from tests.loopback import loopback
from tests.media.media_server import png
from tests.wire.memory_blobs import MemoryBlobs

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

SMALL = FileLimits(picture_edge=100, picture_bytes=50_000)


def picture(width: int, height: int, format: str, *, mode: str = "RGB", **options: Any) -> bytes:
    """A picture that does not pack well."""
    noise = Image.effect_noise((width, height), 80).convert(mode)
    out = io.BytesIO()
    noise.save(out, format, **options)
    return out.getvalue()


def size_of(data: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(data)) as found:
        width, height = found.size
        return width, height


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("shape", [(400, 300), (300, 400), (101, 10)])
def test_a_large_picture_becomes_a_small_one_of_the_same_kind(format: str, shape: tuple[int, int]) -> None:
    """M3: its longer side is as long as may be, and its shape stays."""
    fitted = fit_picture(picture(*shape, format), SMALL)
    with Image.open(io.BytesIO(fitted)) as found:
        assert found.format == format
        assert max(found.size) == 100
        assert found.size[0] / found.size[1] == pytest.approx(shape[0] / shape[1], rel=0.1)


def test_a_picture_of_too_many_bytes_loses_pixels_until_it_fits() -> None:
    """The byte limit applies in addition to the pixel limit (M3)."""
    fitted = fit_picture(picture(400, 400, "PNG"), FileLimits(picture_edge=1000, picture_bytes=20_000))
    assert len(fitted) <= 20_000
    assert max(size_of(fitted)) > 50


def test_what_fits_is_sent_to_the_byte() -> None:
    """M3"""
    small = picture(100, 50, "JPEG")
    assert fit_picture(small, SMALL) is small
    large = picture(400, 300, "JPEG")
    assert fit_picture(large, NO_LIMITS) is large


def test_a_photograph_stands_upright() -> None:
    """The EXIF orientation disappears with the other camera metadata (M3)."""
    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter to the right
    assert size_of(fit_picture(picture(400, 200, "JPEG", exif=turned), SMALL)) == (50, 100)


def test_what_is_seen_through_stays_so() -> None:
    """M3"""
    with Image.open(io.BytesIO(fit_picture(picture(300, 300, "PNG", mode="RGBA"), SMALL))) as found:
        assert found.mode == "RGBA"


def bomb(edge: int) -> bytes:
    """A few bytes that say they are a very large picture."""
    data = png()
    head = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return data[:8] + chunk + data[33:]


@pytest.mark.parametrize(
    "data",
    [
        bomb(9_700),
        bomb(12_000),
        bomb(60_000),
        b"\x89PNG\r\n",
        picture(400, 300, "PNG")[:-2000],
        b"",
        b"GIF89a",
    ],
    ids=["large", "larger", "bomb", "head", "cut", "empty", "gif"],
)
def test_what_cannot_be_unpacked_goes_as_it_is(data: bytes) -> None:
    """A decompression bomb cannot fill the memory, and the provider reports the error (M3)."""
    assert fit_picture(data, SMALL) is data


@pytest.mark.parametrize("size", [(400, 300), (3000, 100)])
def test_a_photograph_with_a_second_picture_in_it_is_made_smaller(size: tuple[int, int]) -> None:
    """M3: telephones put a small one, or a map of its lights, behind a JPEG. That does not move."""
    out = io.BytesIO()
    photo = Image.effect_noise(size, 80).convert("RGB")
    photo.save(out, "MPO", save_all=True, append_images=[photo.resize((40, 30))])
    with Image.open(io.BytesIO(fit_picture(out.getvalue(), SMALL))) as found:
        assert (found.format, max(found.size)) == ("JPEG", 100)


def test_a_picture_of_65536_greys_is_made_smaller() -> None:
    """Scanners and telescopes make such images. Bright parts stay bright (M3)."""
    out = io.BytesIO()
    Image.new("I;16", (400, 300), 40_000).save(out, "PNG")
    with Image.open(io.BytesIO(fit_picture(out.getvalue(), SMALL))) as found:
        assert (found.format, found.size) == ("PNG", (100, 75))
        assert found.convert("L").getpixel((50, 50)) == pytest.approx(40_000 / 256, abs=2)


def test_a_moving_picture_goes_on_moving() -> None:
    """M3"""
    frames = [Image.new("RGB", (200, 200), (n * 80, 0, 0)) for n in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:])
    assert fit_picture(out.getvalue(), SMALL) == out.getvalue()


@pytest.mark.parametrize(
    "message", ["image exceeds 5 MB maximum", "image dimensions exceed max allowed size"]
)
def test_a_refusal_for_size_is_told_from_others(message: str) -> None:
    """M3: in Anthropic's words."""
    assert is_too_large(message)
    assert not is_too_large("Could not process image")


def test_what_is_known_of_providers_is_in_the_catalog() -> None:
    """M3: Claude sees no more than 1568 pixels of a side, and takes five megabytes of base64."""
    providers = load_catalog().providers
    assert providers["anthropic"].files.picture_edge == 1568
    assert providers["vertex-claude"].files.picture_edge == 1568
    assert (providers["anthropic"].files.picture_bytes or 0) * 4 / 3 < 5 << 20
    assert providers["vllm"].files == NO_LIMITS


# ── on the way ────────────────────────────────────────────────────────────────────────────────────


def asking(*messages: File) -> Request:
    return Request("m", tuple(RequestMessage("user", (Text("Look:"), file)) for file in messages))


async def sent(attachments: Attachments) -> bytes:
    """The photo, as a body gets it."""
    coded = attachments.base64["photo"]
    if (content := attachments.contents.get(coded)) is None:
        return base64.b64decode(coded)
    return b"".join([piece async for piece in content.read()])


async def test_a_model_sees_the_small_one_and_the_store_has_the_large_one() -> None:
    """M3: two models with other limits do not get each other's."""
    blobs = MemoryBlobs({"photo": picture(400, 300, "JPEG")})
    before, reader = blobs.blobs["photo"], AttachmentReader(blobs)
    seen = [
        size_of(await sent(await reader.read(asking(blobs.file("photo")), OpenAIChat(), one)))
        for one in (SMALL, NO_LIMITS, replace(SMALL, picture_edge=200), SMALL)
    ]
    assert seen == [(100, 75), (400, 300), (200, 150), (100, 75)]
    assert blobs.blobs["photo"] is before


async def test_the_oldest_files_are_left_out_where_all_are_too_much() -> None:
    """A line of text replaces them, and a notice reports it (M3)."""
    blobs = MemoryBlobs({name: bytes(4000) for name in "abc"})
    files = [blobs.file(name, "image/png") for name in "abc"]
    async with loopback(says("seen")) as server, HttpClient() as client:
        endpoint = replace(ENDPOINTS["openai_chat"], base_url=server.url)
        limits, reader = FileLimits(together=9000), AttachmentReader(blobs)
        model = HttpModel(client, OpenAIChat(), endpoint, model="m", attachments=reader, limits=limits)
        events = [event async for batch in model.stream(asking(*files), "msg_1") for event in batch]
        with pytest.raises(BadRequest, match="or several messages"):
            model.check_files(files)
        model.check_files(files[:2])
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert "the 1 oldest files" in notice.text
    shown = str(server.messages())
    assert "[a, image/png, there is no room for it in one request]" in shown
    assert shown.count("data:image/png") == 2
