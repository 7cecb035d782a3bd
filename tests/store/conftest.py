"""Provide S3 with its address and keys in the environment."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.store.object_server import ObjectServer, object_server


@pytest.fixture
async def s3(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ObjectServer]:
    async with object_server() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
