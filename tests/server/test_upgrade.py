"""Run nodes of an earlier commit and of this one in one fleet. `make upgrade` does so with more
nodes (N4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import upgrade
from tests.postgres import Server, schema_of
from tests.sweeps import WHOLE

pytestmark = pytest.mark.slow


@pytest.mark.skipif(not WHOLE, reason="starts programs of two commits: `make sweep` and `make upgrade` do")
async def test_a_fleet_is_upgraded_while_people_use_it(tmp_path: Path, postgres: Server) -> None:
    """A new node finishes turns that an old node began, also those that waited for an answer when it stopped.
    No effect happens twice, and each call has one result (N4)."""
    try:
        old = upgrade.unpack(upgrade.previous(), tmp_path / "old")
    except upgrade.NoHistory as why:
        pytest.skip(f"there is nothing to upgrade from: {why}")
    wrong = await upgrade.run(
        tmp_path, postgres, old, None, schema=schema_of(tmp_path), seed=5, nodes=1, people=2, between=2
    )
    assert wrong == []
