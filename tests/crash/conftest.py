"""The same stories on both engines. On PostgreSQL, `make test` tells the longest alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres import use_postgres


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        use_postgres(tmp_path, request.getfixturevalue("postgres"))
    return str(request.param)
