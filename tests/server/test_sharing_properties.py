"""V1: no user reads, receives, finds, counts or infers a hidden object, whatever other users do."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from dragoman.conversation.sharing import Right
from tests.server.sharing_probes import (
    CHATS,
    LISTS,
    ROUTES,
    STEPS_OR_NOTHING,
    STRANGE,
    play_sequence,
    scene_in,
)
from tests.server.test_sharing import OTHERS, RIGHTS, shape
from tests.sweeps import examples

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("DRAGOMAN_SHARING_SEED", "1"))
STEPS = 6  # of a sequence, after a few initial steps


def test_every_route_is_tried() -> None:
    """A new route must be in the table of rights or in the tables of this test (V1)."""
    asked = {_shape(one) for one in (*STRANGE, *STEPS_OR_NOTHING, *(f"GET {path}" for path in LISTS))}
    assert [one for one in OTHERS if _shape(one) not in asked] == []
    assert {*ROUTES, *CHATS} == {*RIGHTS}


def _shape(route: str) -> str:
    method, path = route.split()
    return f"{method} {shape(path)}"


async def test_nobody_sees_what_is_not_theirs(tmp_path: Path) -> None:
    """V1: lists, searches, files, exports, imports, other protocols, links, live streams, and every route."""
    await _play(tmp_path, SEED, examples(25))


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEED, SEED + 10_000, 1_000))
async def test_nobody_sees_what_is_not_theirs_in_ten_thousand_sequences(tmp_path: Path, first: int) -> None:
    """V1: the same. The message of a failure begins with the seed of the sequence."""
    tried = await _play(tmp_path, first, 1_000)
    assert [route for route in RIGHTS if not tried[f"hidden {route}"]] == []
    beyond = [route for route in RIGHTS if RIGHTS[route] > Right.READ]
    assert [route for route in beyond if not tried[f"beyond {route}"]] == []
    assert [route for route in STRANGE if not tried[f"strange {route}"]] == []
    assert [what for what in ("links read", "replayed", "nothing inferred") if not tried[what]] == []


async def _play(folder: Path, first: int, count: int) -> Counter[str]:
    """Play sequences and return how often each case was tried. One server serves a hundred sequences."""
    tried: Counter[str] = Counter()
    for seed in range(first, first + count, 100):
        (folder / str(seed)).mkdir()
        async with scene_in(folder / str(seed)) as scene:
            for one in range(seed, min(seed + 100, first + count)):
                await play_sequence(scene, one, STEPS)
        tried += scene.seen
    return tried
