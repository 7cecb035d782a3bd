"""M3: a conversation with many large images blocks no other work, and does not fill the memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from benchmarks.media import LONGEST_WAIT, converse, picture, provider

from dragoman.wire.files.pictures import FileLimits

pytest.importorskip("PIL.Image", reason="Pillow is not installed")
pytestmark = pytest.mark.slow

LIMITS = {
    "made smaller": FileLimits(picture_edge=1568, picture_bytes=3_900_000, together=22_000_000),
    "as they are": FileLimits(together=16_000_000),  # three of them
}


@pytest.mark.long
@pytest.mark.parametrize("limits", LIMITS)
async def test_nobody_waits_while_pictures_are_stored_coded_and_sent(tmp_path: Path, limits: str) -> None:
    """With ten images of four megabytes, the event loop itself does no long work, and later images need no
    more memory than earlier ones. `make bench-media` runs with fifty of ten megabytes (M3)."""
    photo = await asyncio.to_thread(picture, 4.0)
    async with provider() as url:
        waits, _ = await converse(url, str(tmp_path), LIMITS[limits], photo, 10)
    assert waits.busy < LONGEST_WAIT
    if limits == "as they are":  # no body, and no file, is ever held whole
        assert max(waits.memory) - waits.memory[0] < 50
    half = len(waits.memory) // 2
    assert max(waits.memory[half:]) - max(waits.memory[:half]) < 200
