"""Close histories after each test, because they hold files open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workspace.folders import close_histories


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_histories()
