"""A small fleet under attack, as `make chaos` does it with a large one for longer (N2, N3, N4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import chaos
from tests.postgres import Server, schema_of

pytestmark = pytest.mark.slow


async def test_a_fleet_survives_what_happens_to_fleets(tmp_path: Path, postgres: Server) -> None:
    """N2, N3, N4: every turn ends, no effect is there twice, no call without its one result, and two web
    nodes tell every turn alike, while nodes are killed, paused, stopped and cut off, and the database
    crashes."""
    wrong = await chaos.run(
        tmp_path,
        postgres,
        schema=schema_of(tmp_path),
        seed=5,
        workers=2,
        turns=24,
        conversations=8,
        every=1.0,
        crashes=1,
    )
    assert wrong == []
