"""One server and one browser for all tests of this folder; each test is another person."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.stage import Person, Server, at_the_page, chromium, staged


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with staged(tmp_path_factory.mktemp("stage")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def person(browser: Browser, server: Server) -> AsyncIterator[Person]:
    async with at_the_page(browser, server) as person:
        yield person
