"""`python -m scripts.pictures`: generate the images of README and docs again. Needs Chromium.

Uses a real server and a real browser. The model is a script on loopback that finds and fixes a bug.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web
from benchmarks.page import CHROMIUM, chunk_of, model_that, served
from PIL import Image
from playwright.async_api import Browser, Page, async_playwright, expect

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1180, "height": 820}
PHONE = {"width": 390, "height": 780}
SMALLER = 820  # width in pixels of the animated image
HOLD = 700  # milliseconds of a frame
LAST = 3500

CONFIG = """\
model = "stage/claude-sonnet-4-5"
store = "{store}"
tools = ["files", "shell"]
allow = ["files.read", "shell"]
[providers.stage]
base_url = "{url}"
local = true
title = "Anthropic"
models."claude-sonnet-4-5".context = 200_000
"""

PARSER = '''\
def parse(line: str) -> tuple[str, int]:
    """`apples 3` → ("apples", 3)"""
    name, count = line.split()
    return name, int(count)


def total(lines: list[str]) -> int:
    return sum(parse(line)[1] for line in lines)
'''
MENDED = "    return sum(parse(line)[1] for line in lines if line.strip())"
QUESTION = "total() fails when the list has an empty line in it. Can you fix that and run it once?"
CHECK = """python3 -c 'from parser import total; print(total(["apples 3", "", "pears 4"]))'"""
ANSWER = """\
Done. `parse` was right to refuse an empty line; `total` should not have given it one:

- **parser.py**: `total` skips lines that are empty or blank.
- I ran it with `["apples 3", "", "pears 4"]`, and it says **7**.
"""


# ── the play ──────────────────────────────────────────────────────────────────────────────────────


def _call(tool: str, **arguments: object) -> list[bytes]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return [
        chunk_of({"tool_calls": [{"index": 0, "id": f"call_{tool}", "function": function}]}, "tool_calls")
    ]


def _usage(letters: int) -> bytes:
    usage = {"prompt_tokens": 2900 + letters, "completion_tokens": 120, "total_tokens": 3020 + letters}
    return b"data: " + json.dumps({"id": "1", "choices": [], "usage": usage}).encode() + b"\n\n"


def _line(done: int, version: str) -> list[bytes]:
    """Return the model's reply after this number of results."""
    if done == 0:
        return [chunk_of({"content": "Let me read it first."}), *_call("read_file", path="parser.py")]
    if done == 1:
        old = MENDED.replace(" if line.strip()", "")
        return _call("edit_file", path="parser.py", edits=[{"old": old, "new": MENDED}], version=version)
    if done == 2:
        return _call("shell", command=CHECK)
    return [
        *(chunk_of({"content": piece}) for piece in re.findall(r"[\s\S]{1,6}", ANSWER)),
        chunk_of({}, "stop"),
    ]


async def _answer(request: web.Request) -> web.StreamResponse:
    messages = (await request.json())["messages"]
    results = [str(one["content"]) for one in messages if one["role"] == "tool"]
    version = re.search(r"version[^\w]*([\w-]+)", results[0]) if results else None
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for piece in _line(len(results), version.group(1) if version else ""):
        await response.write(piece)
        await asyncio.sleep(0.03)
    await response.write(_usage(len(str(messages)) // 4) + b"data: [DONE]\n\n")
    return response


def _workspace(folder: Path) -> Path:
    work = folder / "shop"
    work.mkdir(parents=True)
    (work / "parser.py").write_text(PARSER, "utf-8")
    return work


# ── the camera ────────────────────────────────────────────────────────────────────────────────────


class Film:
    """Frames, one after another, each for a while."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[tuple[Image.Image, int]] = []

    async def take(self, milliseconds: int = HOLD) -> None:
        whole = Image.open(io.BytesIO(await self._page.screenshot()))
        height = round(whole.height * SMALLER / whole.width)
        self._frames.append(
            (whole.convert("RGB").resize((SMALLER, height), Image.Resampling.LANCZOS), milliseconds)
        )

    def save(self, path: Path) -> None:
        first, *others = [image for image, _ in self._frames]
        durations = [duration for _, duration in self._frames]
        first.save(
            path, save_all=True, append_images=others, duration=durations, loop=0, quality=72, method=6
        )


async def _signed_in(browser: Browser, link: str, **look: Any) -> Page:
    page = await browser.new_page(**look)
    await page.goto(link)
    await expect(page.get_by_test_id("composer-text")).to_be_visible(timeout=30_000)
    return page


async def _play(page: Page, film: Film | None = None) -> None:
    """Run up to the approval request for the edit."""

    async def take(milliseconds: int = HOLD) -> None:
        if film is not None:
            await page.mouse.move(5, 400)
            await film.take(milliseconds)

    await take()
    field = page.get_by_test_id("composer-text")
    for end in (18, 45, len(QUESTION)):
        await field.fill(QUESTION[:end])
        await take(350)
    await field.press("Enter")
    await expect(page.get_by_test_id("question-diff")).to_be_visible(timeout=30_000)
    await page.wait_for_timeout(800)
    await take(2600)


async def _end(page: Page, film: Film) -> None:
    await page.get_by_test_id("allow").hover()
    await film.take(500)
    await page.get_by_test_id("allow").click()
    await page.mouse.move(5, 400)
    for _ in range(5):
        await page.wait_for_timeout(450)
        await film.take(450)
    await expect(page.get_by_test_id("answer").last).to_contain_text("it says 7", timeout=30_000)
    await page.wait_for_timeout(900)
    await film.take(LAST)


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        async with model_that(_answer) as model, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for picture, look in (
                ("page-dark", {"viewport": SIZE, "color_scheme": "dark", "device_scale_factor": 2}),
                ("page-phone", {"viewport": PHONE, "device_scale_factor": 2, "has_touch": True}),
                ("page", {"viewport": SIZE, "device_scale_factor": 2}),
            ):
                folder = Path(name) / picture
                config = CONFIG.format(url=model, store=folder / "chat.db")
                async with served(_workspace(folder), config) as link:
                    page = await _signed_in(browser, link, **look)
                    film = Film(page) if picture == "page" else None
                    await _play(page, film)
                    if film is None:
                        await page.screenshot(path=IMAGES / f"{picture}.png")
                    else:
                        await _end(page, film)
                        film.save(IMAGES / "page.webp")
                    await page.close()
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
