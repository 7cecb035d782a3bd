"""A stage for the browser tests: a real server process, a model that plays over HTTP, a person's page."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    ViewportSize,
    async_playwright,
    expect,
)

from dragoman.server.links import running_servers
from tests.browser.plays import furnish, obey
from tests.cli.program import become_with
from tests.forks import FORKS
from tests.loopback import loopback
from tests.patience import PATIENCE, eventually

expect.set_options(timeout=60_000)  # also on a busy machine

# The first is the same engine without the browser's own windows, and needs two thirds of the processor time.
_CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _CHROMIUMS)), None)
MARKS = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: as root, `make test` installs it"),
]
WINDOW: ViewportSize = {"width": 1200, "height": 800}
_LINK = re.compile(r"http://\S+token=\S+")
# The first two are pages of the browser's own, in each window, and took a third of all time. The others are
# what Playwright turns off: of two such flags Chromium hears the last.
_OFF = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "OptimizationHints",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "Translate",
)
_FLAGS = [
    f"--disable-features={','.join(_OFF)}",
    "--no-sandbox",
    "--site-per-process",  # as in desktop browsers: a misbehaving frame has a separate process
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Server:
    """A `dragoman serve` process that can be killed and started again on the same port."""

    config: Path
    port: int
    link: str = ""
    process: BaseProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    @property
    def printed(self) -> str:
        """Return the output since the last start."""
        return self._log.read_text("utf-8") if self._log.exists() else ""

    @property
    def _log(self) -> Path:
        return self.config.with_name("log")

    async def start(self) -> None:
        self._log.unlink(missing_ok=True)
        arguments = ("serve", "--config", str(self.config), "--port", str(self.port))
        streams = [Path(os.devnull), self._log, self._log]
        self.process = FORKS.Process(
            target=become_with, args=(arguments, Path.cwd(), dict(os.environ), streams), daemon=True
        )
        self.process.start()
        await eventually(lambda: _LINK.search(self.printed) or not self.is_alive)
        found = _LINK.search(self.printed)
        assert found, f"the server did not start: {self.printed}"
        self.link = found.group()

    async def new_link(self) -> str:
        """Return a sign-in link for one browser: first the printed one, then links requested as
        `link` does."""
        link, self.link = self.link, ""
        if link:
            return link
        async with self._session() as session, session.post("/api/links", json={}) as response:
            return f"{self.url}{(await response.json())['path']}"

    async def delete_conversations(self) -> None:
        """Delete the listed conversations, since each newly opened page would show them."""
        async with self._session() as session:
            async with session.get("/api/conversations") as response:
                listed = (await response.json())["items"]
            for one in listed:
                async with session.delete(f"/api/conversations/{one['id']}", json={}) as response:
                    assert response.status in (204, 404)  # the previous test can still be deleting it

    def _session(self) -> aiohttp.ClientSession:
        running, *_ = running_servers(self.config.with_name("chat.db.files"))
        return aiohttp.ClientSession(running.url, headers={"authorization": f"Bearer {running.key}"})

    async def kill(self) -> None:
        """Kill the server without any cleanup, as a power failure would."""
        assert self.process is not None
        self.process.kill()
        await asyncio.to_thread(self.process.join)

    async def stop(self) -> str:
        """In order. Returns what it printed."""
        assert self.process is not None
        self.process.terminate()
        await asyncio.to_thread(self.process.join, PATIENCE)
        return self.printed


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Server]:
    """Yield a server in this folder with a scripted model."""
    async with loopback(obey) as model:
        server = Server(furnish(folder, model.url), free_port())
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@asynccontextmanager
async def chromium(*flags: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Person:
    """A user of the web UI."""

    page: Page
    server: Server

    async def say(self, text: str, *, steer: bool = False) -> None:
        """Send a message when the previous turn is over, unless it steers that turn."""
        if not steer:
            await expect(self.by("stop")).to_be_hidden(timeout=60_000)
        await self.by("composer-text").fill(text)
        # the upload of the attachment is complete
        await expect(self.by("send")).to_be_enabled(timeout=60_000)
        await self.by("composer-text").press("Enter")

    def by(self, testid: str) -> Locator:
        return self.page.get_by_test_id(testid)

    @property
    def answer(self) -> Locator:
        """The newest one."""
        return self.by("answer").last

    @property
    def call(self) -> Locator:
        return self.by("call").last

    @property
    def question(self) -> Locator:
        return self.by("question").last

    async def sees(self, text: str | re.Pattern[str]) -> None:
        """In the newest answer, soon."""
        await expect(self.answer).to_contain_text(text, timeout=60_000)

    async def sees_call(self, state: str) -> None:
        await expect(self.call).to_have_attribute("data-state", state, timeout=60_000)

    async def set(self, **settings: Any) -> None:
        """Change settings of the conversation that is shown."""
        id = self.page.url.rpartition("/")[2]
        await self.page.evaluate(
            """([id, settings]) => fetch(`/api/conversations/${id}`, {method: "PATCH",
            body: JSON.stringify({settings}), headers: {"content-type": "application/json"}})""",
            [id, settings],
        )

    async def until(self, promised: str, given: Any = None) -> None:
        """Wait until the promise of this function resolves to true: `wait_for_function` takes any promise for
        true."""
        async with asyncio.timeout(PATIENCE):
            while not await self.page.evaluate(promised, given):  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.05)

    async def told(self, path: str) -> Any:
        """Return the answer of the API to a request from the page."""
        return await self.page.evaluate("path => fetch(path).then(answer => answer.json())", path)


@asynccontextmanager
async def at_the_page(browser: Browser, server: Server, **options: Any) -> AsyncIterator[Person]:
    """Yield a signed-in user with a separate browser. Errors of the page's scripts fail the test."""
    context = await new_context(browser, **options)
    try:
        async with signed_in(await context.new_page(), server) as person:
            yield person
    finally:
        await context.close()


async def new_context(browser: Browser, **options: Any) -> BrowserContext:
    context = await browser.new_context(**{"viewport": WINDOW, "locale": "en-GB", **options})
    context.set_default_timeout(60_000)
    return context


@asynccontextmanager
async def signed_in(page: Page, server: Server) -> AsyncIterator[Person]:
    broken: list[str] = []

    def note(error: Error) -> None:
        broken.append(str(error))

    page.on("pageerror", note)
    await page.goto(await server.new_link())
    await expect(page.get_by_test_id("composer-text")).to_be_visible(timeout=60_000)
    yield Person(page, server)
    page.remove_listener("pageerror", note)
    assert not broken, broken


async def forget(page: Page, server: Server) -> None:
    """Remove everything that a user can leave in the browser.

    The browser keeps its cached and compiled code of the web UI: it is the same for every user, and compiling
    it is nearly half the work of a short visit. The cache would end with the process that shows the page,
    which ends when the browser visits another site or none.
    """
    for other in page.context.pages:
        if other is not page:
            await other.close()
    await page.unroute_all(behavior="ignoreErrors")
    await page.context.unroute_all(behavior="ignoreErrors")
    await page.goto(f"{server.url}/healthz")
    await server.delete_conversations()
    storage = await page.context.new_cdp_session(page)
    await storage.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
    await storage.detach()
    await page.context.clear_cookies()
    await page.context.clear_permissions()
    await page.set_viewport_size(WINDOW)
    await page.emulate_media(color_scheme="light")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
