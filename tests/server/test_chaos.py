"""A small fleet under attack, as `make chaos` does it with a large one for longer (N2, N3, N4)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from dragoman.wire.scripted import says
from tests import chaos
from tests.fleet import Fleet, until
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of

pytestmark = pytest.mark.slow


@pytest.mark.long
async def test_a_fleet_survives_what_happens_to_fleets(tmp_path: Path, postgres: Server) -> None:
    """Every turn ends, no effect happens twice, each call has one result, and two web nodes report every turn
    alike. All this holds while nodes are killed, paused, stopped and cut off, and while the database
    crashes (N2, N3, N4)."""
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


@pytest.mark.long
async def test_whoever_is_down_when_the_attacks_end_comes_back(tmp_path: Path, postgres: Server) -> None:
    """Each node that is down when the attacks end is up again before the checks."""
    async with loopback(says("x")) as model, asyncio.timeout(PATIENCE):
        fleet = Fleet(tmp_path, postgres.url(schema_of(tmp_path)), model.url)
        attacked = chaos.Chaos(fleet, postgres, random.Random(2))
        try:
            await attacked.start(webs=1, workers=0)
            attacking = asyncio.create_task(attacked.attack(every=0.0))
            await until(lambda: attacked.attacks.total() > 0)
            attacked.peace.set()
            await attacking
            await attacked.ask("GET", "/api/me", tries=1)
        finally:
            await attacked.stop()
