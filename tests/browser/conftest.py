"""Provide one server and one browser for all tests of this folder. Each test is another user."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Error

from tests.browser.stage import Person, Server, chromium, forget, new_context, signed_in, staged


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with staged(tmp_path_factory.mktemp("stage")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def window(browser: Browser) -> AsyncIterator[BrowserContext]:
    """In which one person comes after the other."""
    context = await new_context(browser)
    yield context
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def person(window: BrowserContext, server: Server) -> AsyncIterator[Person]:
    page = window.pages[0] if window.pages else await window.new_page()
    if not server.is_alive:  # the previous test killed the server
        await server.start()
    try:
        async with signed_in(page, server) as person:
            yield person
    finally:
        try:
            await forget(page, server)
        except Error:  # the page crashed, so the next test gets a new one
            await page.close()
            raise
