"""`make bench-page`: measure how fast the web UI is in a real browser, with much content.

Uses a real server, a model on loopback, and the system's Chromium without a window. A late frame is a
stutter: the longest time between two frames is measured in the web UI itself, while it works. One machine
runs everything, including server and model, so a busy one makes every number worse.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from playwright.async_api import Page, async_playwright
from rich.console import Console
from rich.table import Table

from dragoman import Runtime, ScriptedModel
from dragoman.wire.scripted import says

_CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _CHROMIUMS)), None)
MESSAGES = 1000
PROSE = Path(__file__).with_name("prose.md").read_text("utf-8")
ANSWER = (PROSE * (200_000 // len(PROSE) + 1))[:200_000]
LINES = (f"value_{n} = compute({n}, scale={n / 7:.3f})  # line {n}" for n in range(3000))
CODE = "\n".join(["```python", *LINES, "```"])
ROUNDS = 60

CONFIG = """\
model = "bench/answer"
store = "chat.db"
tools = ["basics"]
allow = ["*"]
[limits]
max_rounds = 1000
[providers.bench]
base_url = "{url}"
local = true
"""

FRAMES = """() => {
  window.frames_ = {longest: 0, last: performance.now()};
  const look = (now) => {
    const it = window.frames_;
    it.longest = Math.max(it.longest, now - it.last);
    it.last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""

# Wait in the web UI until an answer with this end is shown. Polling from outside would create separate long
# tasks.
ENDED = """async (end) => {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    const answer = [...document.querySelectorAll("article[data-testid=answer]")].at(-1);
    if (answer?.dataset.live === "false" && answer.textContent.includes(end)) break;
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
  return window.frames_.longest;
}"""

IMPORT = """async (body) => {
  await fetch("/api/import", {method: "POST", body, headers: {"content-type": "application/json"}});
}"""

OPENED = """async ([row, last]) => {
  const began = performance.now();
  row.click();
  for (;;) {
    await new Promise(requestAnimationFrame);
    const found = [...document.querySelectorAll("[data-testid=answer]")].at(-1);
    if (found && found.textContent.includes(last) && found.getBoundingClientRect().bottom > 0) break;
  }
  return performance.now() - began;
}"""


@dataclass(slots=True)
class Row:
    what: str
    found: str
    aim: str = ""


# ── a model ───────────────────────────────────────────────────────────────────────────────────────


def chunk_of(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "1", "choices": [choice]}).encode() + b"\n\n"


def _pieces(said: str, results: int) -> list[bytes]:
    if said == "calls" and results < ROUNDS:
        function = {"name": "calculator", "arguments": json.dumps({"expression": f"{results} + 1"})}
        call = {"index": 0, "id": f"call_{results}", "function": function}
        return [chunk_of({"tool_calls": [call]}, "tool_calls")]
    text = {"long": ANSWER, "code": CODE}.get(said, "Done.")
    return [
        *(chunk_of({"content": piece}) for piece in re.findall(r"[\s\S]{1,24}", text)),
        chunk_of({}, "stop"),
    ]


async def _answer(request: web.Request) -> web.StreamResponse:
    """Stream about 3,000 chunks a second: faster than any model, so that the web UI has to keep up."""
    messages = (await request.json())["messages"]
    asked = max(place for place, one in enumerate(messages) if one["role"] == "user")
    pieces = _pieces(messages[asked]["content"], sum(one["role"] == "tool" for one in messages[asked:]))
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for place in range(0, len(pieces), 60):
        await response.write(b"".join(pieces[place : place + 60]))
        await asyncio.sleep(0.02)
    await response.write(b"data: [DONE]\n\n")
    return response


@asynccontextmanager
async def model_that(answers: Handler) -> AsyncIterator[str]:
    """Its address."""
    app = web.Application()
    app.router.add_post("/chat/completions", answers)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


# ── the page ──────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def served(folder: Path, config: str) -> AsyncIterator[str]:
    """The link to sign in with."""
    (folder / "dragoman.toml").write_text(config, "utf-8")
    command = (sys.executable, "-m", "dragoman", "serve", "--port", "0", "--trust")
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            if found := re.search(rb"http://\S+token=\S+", line):
                yield found.group().decode()
                break
    finally:
        process.terminate()
        await process.wait()


async def _long_conversation(folder: Path) -> str:
    """An export of one with many messages."""
    answers = [says(f"**Answer {n}**\n\n{PROSE[(n * 97) % 3000 :][:600]}") for n in range(MESSAGES // 2)]
    async with Runtime(folder / "other.db", model=ScriptedModel(answers)) as runtime:
        chat = await runtime.conversation()
        for n in range(MESSAGES // 2):
            await (await chat.send(f"Question {n}")).result()
        await chat.rename("A long one")
        return json.dumps(await runtime.export(chat.id))


async def _say(page: Page, text: str) -> None:
    await page.get_by_test_id("composer-text").fill(text)
    await page.get_by_test_id("composer-text").press("Enter")


async def _longest(page: Page, said: str, end: str) -> tuple[float, float]:
    """Return the longest time between two frames, and the processor time of the longest task, in
    milliseconds.

    The first shows what is visible on this machine with everything else that runs, the second what the web
    UI takes.
    """
    await page.goto(page.url.partition("#")[0].rsplit("/c/", 1)[0])
    await page.get_by_test_id("composer-text").wait_for()
    async with traced(page) as events:
        await page.evaluate(FRAMES)
        await _say(page, said)
        frame = float(await page.evaluate(ENDED, end))
    return frame, max(event.get("tdur", 0) for event in events if event["name"] == "RunTask") / 1000


@asynccontextmanager
async def traced(page: Page) -> AsyncIterator[list[dict[str, Any]]]:
    """Return what the web UI's main thread did in this period, after it ends."""
    found: list[dict[str, Any]] = []
    over = asyncio.Event()
    session = await page.context.new_cdp_session(page)
    session.on("Tracing.dataCollected", lambda told: found.extend(told["value"]))
    session.on("Tracing.tracingComplete", lambda _: over.set())
    config = {"includedCategories": ["disabled-by-default-devtools.timeline"], "excludedCategories": ["*"]}
    await session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
    events: list[dict[str, Any]] = []
    yield events
    await session.send("Tracing.end")
    await over.wait()
    await session.detach()
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in found if one["name"] == "thread_name"}
    events += [one for one in found if names.get((one["pid"], one["tid"])) == "CrRendererMain"]


async def _measure(page: Page, link: str, folder: Path) -> AsyncIterator[Row]:
    await page.goto(link)
    await page.get_by_test_id("composer-text").wait_for()
    sizes = "performance.getEntriesByType('resource').filter(one => one.name.includes('.js'))"
    first = await page.evaluate(f"{sizes}.reduce((sum, one) => sum + one.encodedBodySize, 0)")
    paint = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    yield Row("scripts fetched until the page can be used", f"{first / 1000:.1f} kB")
    yield Row("first paint", f"{paint:.0f} ms")

    await page.evaluate(IMPORT, await _long_conversation(folder))
    row = page.get_by_test_id("conversation").filter(has_text="A long one").locator("a, button").first
    await row.wait_for()
    await page.evaluate(FRAMES)
    opened = await page.evaluate(OPENED, [await row.element_handle(), f"Answer {MESSAGES // 2 - 1}"])
    await page.wait_for_timeout(2000)
    yield Row(f"{MESSAGES:,} messages opened at the end", f"{opened:.0f} ms", "200 ms")
    yield Row("… longest frame in it and after", f"{await page.evaluate('window.frames_.longest'):.0f} ms")
    nodes = await page.evaluate("document.querySelectorAll('*').length")
    heap = await page.evaluate("performance.memory?.usedJSHeapSize ?? 0")
    yield Row("… elements and memory then", f"{nodes:,}, {heap / 1e6:.0f} MB")

    for what, said, end in (
        ("an answer of 200 kB", "long", ANSWER[-20:].strip()[-5:]),
        ("a code block of 3,000 lines", "code", "line 2999"),
        (f"{ROUNDS} calls as fast as they come", "calls", "Done."),
    ):
        frame, task = await _longest(page, said, end)
        yield Row(f"{what}, longest frame", f"{frame:.0f} ms", "100 ms")
        yield Row("… longest task, processor's time", f"{task:.0f} ms")


async def main() -> None:
    console = Console()
    table = Table("", "found", "aim", title="the page")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with (
            model_that(_answer) as model,
            served(folder, CONFIG.format(url=model)) as link,
            async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 1200, "height": 800})
            async for row in _measure(page, link, folder):
                console.print(f"[dim]{row.what}: {row.found}[/]", highlight=False)
                table.add_row(row.what, row.found, row.aim)
            await browser.close()
    console.print(table)


if __name__ == "__main__":
    asyncio.run(main())
